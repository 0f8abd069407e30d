import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import type { Caller } from '../protocol/definition.ts';
import { openEnvError } from '../protocol/errors.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { guarded, RecentMap } from './guard.ts';
import { clientAddress } from './request-origin.ts';

/** Callers that are remembered; the one that was longest away is forgotten first. */
export const MAX_CALLERS = 10_000;

/** Finds the session that an HTTP request means. */
export class RequestSessions {
  readonly #sessions: SessionRegistry;
  /** The session that each caller reset last. */
  readonly #latest = new RecentMap<string>(MAX_CALLERS);
  readonly #trustedProxies: number;

  constructor(sessions: SessionRegistry, trustedProxies: number) {
    this.#sessions = sessions;
    this.#trustedProxies = trustedProxies;
  }

  /**
   * The named session: by the body's `session_id`, else the query's, else the `x-session-id` header. Without a name, the
   * session that the caller reset last; `undefined` when there is none.
   * @throws EnvironmentError `UNKNOWN_SESSION`, and what `SessionRegistry.resume` throws
   */
  async of(context: Context, fromBody?: string | null): Promise<Session | undefined> {
    const named = this.named(context, fromBody);
    if (named) return required(named, await this.#sessions.resume(named));
    const latest = this.#latest.get(callerOf(context, this.#trustedProxies));
    return latest === undefined ? undefined : this.#sessions.resume(latest);
  }

  /** The id that a request names; `undefined` when it means the caller's latest session. */
  named(context: Context, fromBody?: string | null): string | undefined {
    return fromBody || context.req.query('session_id') || context.req.header('x-session-id') || undefined;
  }

  /** The named session, which the caller is about to reset. @throws EnvironmentError `UNKNOWN_SESSION` */
  async toReset(id: string): Promise<Session> {
    return required(id, await this.#sessions.restart(id));
  }

  /** The client of a request, for its quotas and for work that it waits for. */
  caller(context: Context): Caller {
    return { name: context.get('client'), signal: context.req.raw.signal };
  }

  /** Makes a session the caller's latest. */
  remember(context: Context, session: Session): void {
    this.#latest.set(callerOf(context, this.#trustedProxies), session.id);
  }
}

function required(id: string, session: Session | undefined): Session {
  if (!session) throw openEnvError('UNKNOWN_SESSION', { id });
  return session;
}

/**
 * Digest of who a request without a `session_id` comes from. Requests with the same `authorization` header are one
 * caller; without it, requests from the same address with the same user agent are. Headers can be long, so that only
 * the digest is kept.
 */
function callerOf(context: Context, trustedProxies: number): string {
  const authorization = context.req.header('authorization');
  const caller = authorization
    ? `authorization ${authorization}`
    : `${clientAddress(guarded(context), trustedProxies)} ${context.req.header('user-agent') ?? ''}`;
  return createHash('sha256').update(caller).digest('base64');
}
