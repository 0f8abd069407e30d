import type { EnvironmentDefinition } from '../definition.ts';
import { Session } from './session.ts';
import { EnvironmentFactoryError, SessionCapacityError } from './session-errors.ts';

export interface SessionRegistryOptions {
  /** Most sessions at once. */
  readonly maxSessions: number;
  /** A session without a socket that rests this long is closed, ms. `null`: never. */
  readonly idleTimeoutMs: number | null;
}

/**
 * The live sessions of a server. When all slots are taken, opening one evicts the session that was used least recently
 * among those that no socket holds; when sockets hold them all, it is refused.
 */
export class SessionRegistry<Action = unknown, Observation = object, State = object> {
  readonly maxSessions: number;
  readonly #definition: EnvironmentDefinition<Action, Observation, State>;
  readonly #sessions = new Map<string, Session<Action, Observation, State>>();
  readonly #attached = new Set<string>();
  readonly #closing = new Set<string>();
  readonly #closeListeners: ((session: Session<Action, Observation, State>) => void)[] = [];
  readonly #idleTimeoutMs: number | null;
  readonly #idleTimer: NodeJS.Timeout | undefined;

  constructor(
    definition: EnvironmentDefinition<Action, Observation, State>,
    { maxSessions, idleTimeoutMs }: SessionRegistryOptions,
  ) {
    this.#definition = definition;
    this.maxSessions = maxSessions;
    this.#idleTimeoutMs = idleTimeoutMs;
    if (idleTimeoutMs !== null) {
      this.#idleTimer = setInterval(
        () => void this.closeIdle(),
        Math.min(Math.max(idleTimeoutMs / 4, 50), 60_000),
      ).unref();
    }
  }

  get size(): number {
    return this.#sessions.size;
  }

  [Symbol.iterator](): Iterator<Session<Action, Observation, State>> {
    return this.#sessions.values();
  }

  /**
   * Opens a session with a fresh environment.
   * @throws SessionCapacityError when no slot is free and none can be freed.
   * @throws EnvironmentFactoryError when the environment cannot be created.
   */
  open(): Session<Action, Observation, State> {
    if (this.#sessions.size >= this.maxSessions) {
      const evicted = this.#leastRecentlyUsed();
      if (!evicted) throw new SessionCapacityError(this.#sessions.size, this.maxSessions);
      void this.close(evicted.id);
    }
    const session = new Session(this.#createEnvironment());
    this.#sessions.set(session.id, session);
    return session;
  }

  find(id: string): Session<Action, Observation, State> | undefined {
    return this.#sessions.get(id);
  }

  /** Whether a socket holds the session. */
  isAttached(id: string): boolean {
    return this.#attached.has(id);
  }

  /** Lets a socket hold the session: it is neither evicted nor closed for resting. False when one holds it already. */
  attach(id: string): boolean {
    if (!this.#sessions.has(id) || this.#attached.has(id)) return false;
    this.#attached.add(id);
    return true;
  }

  /** The socket has let go of the session, which now rests, or closes if somebody has asked for that. */
  detach(id: string): void {
    this.#attached.delete(id);
    if (this.#closing.has(id)) void this.close(id);
  }

  /** Closes an attached session as soon as its socket lets go of it. */
  closeOnDetach(id: string): void {
    this.#closing.add(id);
  }

  /** Closes a session and frees its slot at once. False when there is none. Errors of the environment are dropped. */
  async close(id: string): Promise<boolean> {
    const session = this.#sessions.get(id);
    if (!session) return false;
    this.#sessions.delete(id);
    this.#attached.delete(id);
    this.#closing.delete(id);
    for (const listener of this.#closeListeners) listener(session);
    await session.close().catch(() => {});
    return true;
  }

  /** Closes the sessions that have rested too long. */
  async closeIdle(now = Date.now()): Promise<void> {
    const limit = this.#idleTimeoutMs;
    if (limit === null) return;
    const idle = [...this.#sessions.values()].filter(
      (session) => !this.#attached.has(session.id) && !session.busy && now - session.lastUsedAt >= limit,
    );
    await Promise.all(idle.map((session) => this.close(session.id)));
  }

  async closeAll(): Promise<void> {
    clearInterval(this.#idleTimer);
    await Promise.all([...this.#sessions.keys()].map((id) => this.close(id)));
  }

  onClose(listener: (session: Session<Action, Observation, State>) => void): void {
    this.#closeListeners.push(listener);
  }

  #createEnvironment() {
    try {
      return this.#definition.create();
    } catch (error) {
      throw new EnvironmentFactoryError(this.#definition.id, error);
    }
  }

  #leastRecentlyUsed(): Session<Action, Observation, State> | undefined {
    let oldest: Session<Action, Observation, State> | undefined;
    for (const session of this.#sessions.values()) {
      if (this.#attached.has(session.id) || session.busy) continue;
      if (!oldest || session.lastUsedAt < oldest.lastUsedAt) oldest = session;
    }
    return oldest;
  }
}
