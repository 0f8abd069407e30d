import type { EnvironmentDefinition, ResetOptions } from '../protocol/definition.ts';
import { errorCode, openEnvError } from '../protocol/errors.ts';
import { newSessionId } from '../protocol/session-id.ts';
import type { ServerOptions } from '../server/create-server.ts';
import { type Capacity, capacityOf, type Lease } from './capacity.ts';
import { createInstance, PlayCounts, Session, type Watch, watchOf } from './session.ts';
import { type SessionStore, type StoreCondition, type StoredSession, silentLogger } from './session-store.ts';
import { DurationMeter } from './turns.ts';

/** Number and lifetime of sessions. */
export type SessionRegistryOptions = Required<Pick<ServerOptions, 'maxSessions' | 'idleTimeoutMs'>> &
  Pick<ServerOptions, 'maxEpisodeSize' | 'maxTotalSize' | 'store' | 'logger'>;

type Rebuild = (stored: StoredSession, lease: Lease) => Promise<Session>;

/**
 * The live sessions of a server. When all slots are taken, opening one evicts the session that was used least recently
 * among those that no socket holds; when sockets hold them all, it is refused. With a store, a session that has left
 * memory is rebuilt when it is asked for.
 */
export class SessionRegistry {
  readonly capacity: Capacity;
  readonly counts = new PlayCounts();
  readonly #definition: EnvironmentDefinition;
  /** Storage of sessions, when the environment can be replayed. */
  readonly #store: SessionStore | undefined;
  readonly #closeStore: () => Promise<void>;
  readonly #sessions = new Map<string, Session>();
  readonly #resuming = new Map<string, Promise<Session | undefined>>();
  readonly #closeListeners: ((session: Session) => void)[] = [];
  readonly #idleTimeoutMs: number | null;
  readonly #idleTimer: NodeJS.Timeout | undefined;
  readonly #resetDuration = new DurationMeter();
  /** Watch over all environments. */
  readonly watch: Watch;
  #draining = false;

  constructor(definition: EnvironmentDefinition, options: SessionRegistryOptions) {
    const { store, idleTimeoutMs, maxSessions, logger = silentLogger } = options;
    const { maxEpisodeSize = Infinity, maxTotalSize = Infinity } = options;
    this.#definition = definition;
    this.watch = watchOf(definition, logger);
    this.#store = definition.replayable === false ? undefined : store;
    this.#closeStore = async () => store?.close();
    this.#idleTimeoutMs = idleTimeoutMs;
    this.capacity = capacityOf(
      definition,
      { maxSessions, maxEpisodeSize, maxTotalSize },
      () => this.#resting(),
      (session) => void this.release(session.id),
    );
    if (idleTimeoutMs !== null) {
      const everyMs = Math.min(Math.max(idleTimeoutMs / 4, 50), 60_000);
      this.#idleTimer = setInterval(() => void this.releaseIdle(), everyMs).unref();
    }
  }

  /** Slots that are taken: sessions in memory, those that are being rebuilt, and environments of vectors. */
  get size(): number {
    return this.capacity.taken.slots;
  }

  /** True when sessions outlive their time in memory. */
  get durable(): boolean {
    return this.#store !== undefined;
  }

  /** Condition of the store; `undefined` without one that tells. */
  get storeCondition(): StoreCondition | undefined {
    return this.#store?.condition?.();
  }

  [Symbol.iterator](): Iterator<Session> {
    return this.#sessions.values();
  }

  /**
   * Opens a session with a fresh environment.
   * @param client Digest of who opens it, for the quotas of the store and for its turns.
   * @throws EnvironmentError `CAPACITY_REACHED` when no slot is free and none can be freed,
   * `FACTORY_ERROR` when the environment cannot be created.
   */
  open(client?: string): Session {
    return this.hold(1, (lease) => {
      const session = this.#fresh(newSessionId(), client, lease);
      this.#sessions.set(session.id, session);
      return session;
    });
  }

  /** As `Capacity.hold`. @throws EnvironmentError `DRAINING` */
  hold<Made>(slots: number, make: (lease: Lease) => Made, options?: ResetOptions): Made {
    if (this.#draining) throw openEnvError('DRAINING', {});
    return this.capacity.hold(slots, make, options);
  }

  /** The session with this id, if it is in memory. */
  find(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  /**
   * The session with this id, from memory or rebuilt from the store; `undefined` when there is none.
   * @throws EnvironmentError `REPLAY_FAILED`, `SESSION_DAMAGED`, `STORE_ERROR`, `CAPACITY_REACHED`, `FACTORY_ERROR`
   */
  resume(id: string): Promise<Session | undefined> {
    return this.#fetch(id, (stored, lease) => this.#rebuild(id, stored, lease));
  }

  /**
   * Like `resume`, for a session that is about to be reset: it need not be replayed, and may have been played on
   * another version of the environment.
   */
  restart(id: string): Promise<Session | undefined> {
    return this.#fetch(id, async (stored, lease) => {
      if (stored.environment.id !== this.#definition.id) this.#refuseForeign(id, stored);
      return this.#fresh(id, stored.client, lease);
    });
  }

  /** Lets a socket hold a session. False when one holds it already. */
  attach(session: Session): boolean {
    if (this.#sessions.get(session.id) !== session || session.isAttached) return false;
    session.isAttached = true;
    return true;
  }

  /** The socket has let go of the session, which now rests, or closes if somebody has asked for that. */
  detach(session: Session): void {
    session.isAttached = false;
    if (session.closesOnDetach) this.close(session.id).catch(() => {});
  }

  /**
   * Lets a session leave memory. Its slot is free at once. With a store it can be resumed. False when it is not here.
   * Errors of the environment's `close` are dropped.
   */
  async release(id: string): Promise<boolean> {
    const session = this.#sessions.get(id);
    if (!session) return false;
    this.#sessions.delete(id);
    const closed = session.close().catch(() => {});
    for (const listener of this.#closeListeners) listener(session);
    await closed;
    return true;
  }

  /** Ends a session for good. False when there is none in memory. @throws EnvironmentError `STORE_ERROR` */
  async close(id: string): Promise<boolean> {
    const wasHere = await this.release(id);
    if (wasHere) await this.#store?.remove(id);
    return wasHere;
  }

  async releaseIdle(now = performance.now()): Promise<void> {
    const limit = this.#idleTimeoutMs;
    if (limit === null) return;
    const idle = this.#resting().filter((session) => now - session.lastUsedAt >= limit);
    await Promise.all(idle.map((session) => this.release(session.id)));
  }

  drain(): void {
    this.#draining = true;
  }

  async shutDown(): Promise<void> {
    clearInterval(this.#idleTimer);
    await Promise.allSettled(this.#resuming.values());
    await Promise.all([...this.#sessions.keys()].map((id) => this.release(id)));
    await this.#closeStore();
  }

  /** Calls a listener with each session that leaves memory. */
  onClose(listener: (session: Session) => void): void {
    this.#closeListeners.push(listener);
  }

  async #fetch(id: string, make: Rebuild): Promise<Session | undefined> {
    const live = this.#sessions.get(id);
    if (live) {
      if (!this.#store || (await live.isOwned())) return live;
      // Another process has played on since, or an entry could not be written: what is here is out of date.
      if (this.#sessions.get(id) === live) await this.release(id);
    }
    if (!this.#store) return undefined;
    const resumed = this.#resuming.get(id) ?? this.#take(id, make).finally(() => this.#resuming.delete(id));
    this.#resuming.set(id, resumed);
    return resumed;
  }

  async #take(id: string, make: Rebuild): Promise<Session | undefined> {
    const stored = await this.#store!.take(id);
    if (!stored) return undefined;
    return this.hold(1, async (lease) => {
      const session = await make(stored, lease);
      this.#sessions.set(id, session);
      return session;
    });
  }

  async #rebuild(id: string, stored: StoredSession, lease: Lease): Promise<Session> {
    const { id: environmentId, version } = this.#definition;
    if (stored.damage !== undefined) throw openEnvError('SESSION_DAMAGED', { id, damage: stored.damage });
    if (stored.environment.id !== environmentId || stored.environment.version !== version) {
      this.#refuseForeign(id, stored);
    }
    try {
      const environment = createInstance(this.#definition, stored.client);
      return await Session.restore(id, environment, stored, { lease, ...this.#common });
    } catch (error) {
      if (['FACTORY_ERROR', 'CAPACITY_REACHED'].includes(errorCode(error))) throw error;
      const problem = `could not be replayed: ${(error as Error).message}`;
      throw openEnvError('REPLAY_FAILED', { id, problem }, { cause: error });
    }
  }

  #refuseForeign(id: string, { environment }: StoredSession): never {
    const here = `${this.#definition.id} ${this.#definition.version}`;
    const problem = `was played on ${environment.id} ${environment.version}; this server has ${here}.`;
    throw openEnvError('REPLAY_FAILED', { id, problem });
  }

  #fresh(id: string, client: string | undefined, lease: Lease): Session {
    const environment = createInstance(this.#definition, client);
    const journal = this.#store?.open(id, this.#definition, client);
    return new Session(environment, { id, client, journal, lease, ...this.#common });
  }

  get #common() {
    return {
      keepsActions: this.#definition.replayable !== false,
      counts: this.counts,
      resetDuration: this.#resetDuration,
      watch: this.watch,
      dealEpisode: this.#definition.dealEpisode,
    };
  }

  /** Sessions that no socket holds and that do nothing: those without an episode first, then those used least recently. */
  #resting(): Session[] {
    return [...this.#sessions.values()]
      .filter((session) => !session.isAttached && !session.busy)
      .sort((a, b) => Number(a.record !== null) - Number(b.record !== null) || a.lastUsedAt - b.lastUsedAt);
  }
}
