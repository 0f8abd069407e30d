import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { clientAddress } from '../guard/forwarded.ts';
import { guarded } from '../guard/guard-requests.ts';

/**
 * Digest of who a request without a `session_id` comes from. Requests with the same `authorization` header are one
 * caller; without it, requests from the same address with the same user agent are. Headers can be long, so that only
 * the digest is kept.
 */
export function callerOf(context: Context, trustedProxies: number): string {
  return createHash('sha256').update(caller(context, trustedProxies)).digest('base64');
}

function caller(context: Context, trustedProxies: number): string {
  const authorization = context.req.header('authorization');
  if (authorization) return `authorization ${authorization}`;
  const address = clientAddress(guarded(context), trustedProxies);
  return `${address} ${context.req.header('user-agent') ?? ''}`;
}

/** Callers that are remembered; the one that was longest away is forgotten first. */
const MOST_CALLERS = 10_000;

/** The session that each caller reset last. */
export class LatestSessions {
  readonly #sessionOf = new Map<string, string>();

  get(caller: string): string | undefined {
    const sessionId = this.#sessionOf.get(caller);
    if (sessionId !== undefined) this.set(caller, sessionId);
    return sessionId;
  }

  set(caller: string, sessionId: string): void {
    // A map keeps the order of insertion, so that its first key is the one that was longest away.
    this.#sessionOf.delete(caller);
    this.#sessionOf.set(caller, sessionId);
    if (this.#sessionOf.size > MOST_CALLERS) this.#sessionOf.delete(this.#sessionOf.keys().next().value!);
  }
}
