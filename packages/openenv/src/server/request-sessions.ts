import type { Context } from 'hono';
import type { Session } from '../sessions/session.ts';
import { UnknownSessionError } from '../sessions/session-errors.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { callerOf, LatestSessions } from './latest-sessions.ts';

/** Finds the session that an HTTP request means. */
export class RequestSessions {
  readonly #sessions: SessionRegistry;
  readonly #latest = new LatestSessions();
  readonly #trustProxy: boolean;

  constructor(sessions: SessionRegistry, trustProxy: boolean) {
    this.#sessions = sessions;
    this.#trustProxy = trustProxy;
    sessions.onClose((session) => this.#latest.forget(session.id));
  }

  /** @throws UnknownSessionError */
  byId(id: string): Session {
    const session = this.#sessions.find(id);
    if (!session) throw new UnknownSessionError(id);
    return session;
  }

  /**
   * The named session: by the body's `session_id`, else the query's, else the `x-session-id` header. Without a name, the
   * session that the caller reset last; `undefined` when there is none.
   * @throws UnknownSessionError
   */
  of(context: Context, fromBody?: string | null): Session | undefined {
    const named = fromBody || context.req.query('session_id') || context.req.header('x-session-id');
    if (named) return this.byId(named);
    const latest = this.#latest.get(callerOf(context, this.#trustProxy));
    return latest === undefined ? undefined : this.#sessions.find(latest);
  }

  /** Makes a session the caller's latest. */
  remember(context: Context, session: Session): void {
    this.#latest.set(callerOf(context, this.#trustProxy), session.id);
  }
}
