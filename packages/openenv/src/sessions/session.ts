import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type EpisodeRecord,
  type ResetOptions,
  type StepResult,
} from '../protocol/definition.ts';
import { openEnvError } from '../protocol/errors.ts';
import type { StateBody } from '../protocol/messages.ts';
import type { Lease } from './capacity.ts';
import type { Logger, SessionJournal, StoredSession } from './session-store.ts';
import { DurationMeter, nextTurn, Turn, whenDone } from './turns.ts';

/** An operation that takes longer than this does not keep its environment from being closed, ms. */
const CLOSE_TIMEOUT_MS = 2000;

/** Counts of steps, resets and errors since a server was made. */
export class PlayCounts {
  steps = 0;
  resets = 0;
  /** WebSocket messages that were answered with an error, by its code. */
  readonly errors = new Map<string, number>();

  countError(code: string): void {
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  }
}

export interface SessionOptions {
  /** Default: a new UUID. */
  readonly id?: string;
  /** Digest of who opened it, as of `Guard.clientOf`. */
  readonly client?: string | undefined;
  /** Journal of resets and actions, written before their results are given. */
  readonly journal?: SessionJournal;
  /** Keeps the actions. Default true. */
  readonly keepsActions?: boolean;
  /** Counts of steps and resets. */
  readonly counts?: PlayCounts;
  /** Time that resets take, of all sessions of a server together. */
  readonly resetDuration?: DurationMeter;
  /** Its slot and the size of its episode. It is given back when the session closes. */
  readonly lease?: Lease;
  /** Watch over the environment. Default none. */
  readonly watch?: Watch;
  /** As of the definition. */
  readonly dealEpisode?: ((options: ResetOptions) => ResetOptions) | undefined;
}

/** Result of a reset or step, at once where the environment and the journal are synchronous. */
export type Result = StepResult | Promise<StepResult>;

/**
 * One environment instance and what was done with it. Operations never overlap: when the environment or the journal is
 * asynchronous, a call waits for those before it; one that will take long waits for a turn. Otherwise `reset` and `step`
 * return plain results.
 */
export class Session {
  readonly id: string;
  readonly environment: Environment;
  /** True while a socket holds the session: it is neither evicted nor released for resting. */
  isAttached = false;
  /** True when it is to be closed as soon as its socket lets go of it. */
  closesOnDetach = false;
  /** Time of `performance.now()`, which jumps of the clock leave alone; the least recently used session is evicted first, ms. */
  lastUsedAt = performance.now();
  readonly #options: SessionOptions;
  readonly #counts: PlayCounts;
  readonly #watch: Watch;
  readonly #resetDuration: DurationMeter;
  readonly #stepDuration = new DurationMeter();
  #episodeId: string | null = null;
  #reset: ResetOptions | null = null;
  #actions: unknown[] = [];
  #stepCount = 0;
  #lastResult: StepResult | null = null;
  #running: Promise<void> | null = null;
  #failure: Error | null = null;

  constructor(environment: Environment, options: SessionOptions = {}) {
    this.environment = environment;
    this.id = options.id ?? randomUUID();
    this.#options = options;
    this.#counts = options.counts ?? new PlayCounts();
    this.#watch = options.watch ?? ((run) => run());
    this.#resetDuration = options.resetDuration ?? new DurationMeter();
  }

  /** Rebuilds a session from what a store kept of it, or closes it. @throws whatever the environment throws. */
  static async restore(
    id: string,
    environment: Environment,
    stored: StoredSession,
    options: Omit<SessionOptions, 'id' | 'client' | 'journal'> = {},
  ): Promise<Session> {
    const { client, journal } = stored;
    const session = new Session(environment, { ...options, id, client, journal });
    try {
      options.lease?.admit(stored.reset);
      for await (const result of played(environment, stored, client)) {
        session.#lastResult = result;
      }
    } catch (error) {
      await session.close().catch(() => {});
      throw error;
    }
    session.#episodeId = stored.episodeId;
    session.#reset = stored.reset;
    session.#actions = [...stored.actions];
    session.#stepCount = stored.actions.length;
    return session;
  }

  /**
   * The episode so far, or `null` before the first reset. It grows as the session is played. An environment that is not
   * replayable has no actions in it.
   */
  get record(): EpisodeRecord | null {
    return this.#reset && { reset: this.#reset, actions: this.#actions };
  }

  get lastResult(): StepResult | null {
    return this.#lastResult;
  }

  /** Steps since the last reset. */
  get stepCount(): number {
    return this.#stepCount;
  }

  get lease(): Lease | undefined {
    return this.#options.lease;
  }

  /** True while an asynchronous operation is under way. */
  get busy(): boolean {
    return this.#running !== null;
  }

  /** Why the session can be used no more: what was played could not be kept. It may be resumed from the store. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** False when another process has taken the session over. */
  async isOwned(): Promise<boolean> {
    return this.#failure === null && ((await this.#options.journal?.isOwned()) ?? true);
  }

  async settled(): Promise<void> {
    while (this.#running) await this.#running;
  }

  reset(options: ResetOptions): Result {
    return this.#inOrder(this.#resetDuration, () => this.#start(options));
  }

  /**
   * Plays one valid action.
   * @throws EnvironmentError `NOT_RESET` before the first reset, `EPISODE_OVER` after the end, or the environment's own.
   */
  step(action: unknown): Result {
    return this.#inOrder(this.#stepDuration, () => this.#play(action));
  }

  /** The episode's identity and the environment's own state; before the first reset only the identity. */
  state(): StateBody | Promise<StateBody> {
    return this.#running === null ? this.#readState() : this.#running.then(() => this.#readState());
  }

  /** Gives its lease back at once, waits for what is under way, though not for ever, then frees the environment. */
  async close(): Promise<void> {
    this.lease?.release();
    await Promise.race([this.settled(), sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
    await this.environment.close?.();
  }

  #start(options: ResetOptions): Result {
    this.#use();
    this.lease?.admit(options);
    const dealt = this.#options.dealEpisode?.(options) ?? options;
    const result = this.#resetDuration.time(() => this.#watch(() => this.environment.reset(dealt)));
    return whenDone(result, (started) => {
      this.#counts.resets++;
      this.#episodeId = options.episode_id ?? randomUUID();
      this.#reset = dealt;
      this.#actions = [];
      this.#stepCount = 0;
      this.#lastResult = started;
      return this.#kept(this.#options.journal?.reset(this.#episodeId, dealt), started);
    });
  }

  #play(action: unknown): Result {
    this.#use();
    if (this.#lastResult === null) {
      const problem = 'The session has no episode yet. Reset it before the first step.';
      throw new EnvironmentError('NOT_RESET', problem);
    }
    if (this.#lastResult.done) {
      throw new EnvironmentError('EPISODE_OVER', 'The episode is over. Reset the session to start another.');
    }
    const result = this.#stepDuration.time(() => this.#watch(() => this.environment.step(action)));
    return whenDone(result, (played) => this.#played(action, played));
  }

  #played(action: unknown, result: StepResult): Result {
    if (result.reward !== null && !Number.isFinite(result.reward)) {
      throw new TypeError(`Expected the environment to give a finite reward, got ${result.reward}.`);
    }
    if (this.#options.keepsActions !== false) this.#actions.push(action);
    const index = this.#stepCount++;
    this.#counts.steps++;
    this.#lastResult = result;
    return this.#kept(this.#options.journal?.step(index, action), result);
  }

  #readState(): StateBody {
    this.#use();
    const identity = { episode_id: this.#episodeId, step_count: this.#stepCount };
    return this.#reset === null ? identity : { ...identity, ...this.environment.state(), ...identity };
  }

  #use(): void {
    if (this.#failure) throw this.#failure;
    this.lastUsedAt = performance.now();
  }

  /** Gives a result once its entry is safe. A session whose entry is lost is ahead of its journal and must not go on. */
  #kept<T>(entry: Promise<void> | undefined, result: T): T | Promise<T> {
    if (entry === undefined) return result;
    return entry.then(
      () => result,
      (error) => {
        this.#failure = error;
        throw error;
      },
    );
  }

  #inOrder(pace: DurationMeter, run: () => Result): Result {
    if (this.#running === null && !pace.isLong) return this.#track(run());
    const before = this.#running ?? Promise.resolve();
    return this.#track(before.then(() => (pace.isLong ? nextTurn(this.#options.client).then(run) : run())));
  }

  #track(outcome: Result): Result {
    if (!(outcome instanceof Promise)) return outcome;
    const settle = () => {
      if (this.#running === settled) this.#running = null;
    };
    const settled: Promise<void> = outcome.then(settle, settle);
    this.#running = settled;
    return outcome;
  }
}

/** A fresh instance of an environment. @throws EnvironmentError `FACTORY_ERROR` */
export function createInstance(definition: EnvironmentDefinition, client?: string): Environment {
  try {
    return definition.create(client);
  } catch (error) {
    throw openEnvError('FACTORY_ERROR', { factory_name: definition.id }, { cause: error });
  }
}

/** Errors that a watch has told of. */
export const WATCHED = new WeakSet<object>();

/** Runs a reset or a step of an environment. */
export type Watch = (run: () => Result) => Result;

/** A watch that refuses observations which break their schema, and logs with its stack what no client can correct. */
export function watchOf(
  { id, observation, checksObservations = false }: EnvironmentDefinition,
  logger: Logger,
): Watch {
  const judge = (result: StepResult) => {
    const { error } = checksObservations ? observation.safeParse(result.observation) : {};
    if (error === undefined) return result;
    const issues = error.issues.map(({ path, message }) => `${path.join('.') || 'observation'}: ${message}`);
    const problem = `The environment \`${id}\` broke the schema of its observation: ${issues.join('; ')}`;
    throw new TypeError(problem);
  };
  const fail = (error: unknown): never => {
    if (!(error instanceof EnvironmentError)) {
      WATCHED.add(Object(error));
      logger.error({ err: error }, `the environment ${id} failed`);
    }
    throw error;
  };
  return (run) => {
    try {
      const result = run();
      return result instanceof Promise ? result.then(judge).catch(fail) : judge(result);
    } catch (error) {
      return fail(error);
    }
  };
}

/** Plays a session, or an environment. */
export type Player = Pick<Environment, 'reset' | 'step'>;

/** Plays a record for a client, in turns with other computations. Yields the answer to the reset, then to each action. */
export async function* played(
  player: Player,
  { reset, actions }: EpisodeRecord,
  client?: string,
): AsyncGenerator<StepResult> {
  const turn = new Turn(client);
  await turn.next();
  yield await player.reset(reset);
  for (const action of actions) {
    if (turn.isOver) await turn.next();
    yield player.step(action);
  }
}
