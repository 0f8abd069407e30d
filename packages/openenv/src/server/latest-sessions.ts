import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';

/**
 * Who a request without a `session_id` comes from. Requests with the same `authorization` header are one caller;
 * without it, requests from the same address with the same user agent are.
 */
export function callerOf(context: Context, trustProxy: boolean): string {
  const authorization = context.req.header('authorization');
  if (authorization) return `authorization ${authorization}`;
  const forwarded = trustProxy ? context.req.header('x-forwarded-for')?.split(',')[0]?.trim() : undefined;
  return `${forwarded ?? addressOf(context)} ${context.req.header('user-agent') ?? ''}`;
}

function addressOf(context: Context): string {
  // Requests made in process, as `app.request()` does, have no connection.
  return context.env?.incoming ? (getConnInfo(context).remote.address ?? '') : 'in process';
}

/** The session that each caller reset last. Forgets a session when it closes. */
export class LatestSessions {
  readonly #sessionOf = new Map<string, string>();
  readonly #callersOf = new Map<string, Set<string>>();

  get(caller: string): string | undefined {
    return this.#sessionOf.get(caller);
  }

  set(caller: string, sessionId: string): void {
    const previous = this.#sessionOf.get(caller);
    if (previous === sessionId) return;
    if (previous !== undefined) this.#unlink(previous, caller);
    this.#sessionOf.set(caller, sessionId);
    const callers = this.#callersOf.get(sessionId) ?? new Set();
    this.#callersOf.set(sessionId, callers.add(caller));
  }

  forget(sessionId: string): void {
    for (const caller of this.#callersOf.get(sessionId) ?? []) this.#sessionOf.delete(caller);
    this.#callersOf.delete(sessionId);
  }

  #unlink(sessionId: string, caller: string): void {
    const callers = this.#callersOf.get(sessionId);
    callers?.delete(caller);
    if (callers?.size === 0) this.#callersOf.delete(sessionId);
  }
}
