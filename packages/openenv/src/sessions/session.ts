import { randomUUID } from 'node:crypto';
import {
  type Environment,
  EnvironmentError,
  type EpisodeRecord,
  type ResetOptions,
  type StepResult,
} from '../definition.ts';
import type { StateBody } from '../protocol/http-body.ts';

/**
 * One environment instance and what was done with it. Operations never overlap: when the environment is asynchronous,
 * a call waits for those before it. With a synchronous environment `reset` and `step` return plain results.
 */
export class Session<Action = unknown, Observation = object, State = object> {
  readonly id: string;
  readonly environment: Environment<Action, Observation, State>;
  /** Milliseconds since the epoch. */
  readonly createdAt = Date.now();
  /** Milliseconds since the epoch; the least recently used session is evicted first. */
  lastUsedAt = this.createdAt;
  #episodeId: string | null = null;
  #reset: ResetOptions | null = null;
  #actions: Action[] = [];
  #lastResult: StepResult<Observation> | null = null;
  #running: Promise<unknown> | null = null;

  constructor(environment: Environment<Action, Observation, State>, id: string = randomUUID()) {
    this.environment = environment;
    this.id = id;
  }

  /** The episode so far, or `null` before the first reset. It grows as the session is played. */
  get record(): EpisodeRecord<Action> | null {
    return this.#reset && { reset: this.#reset, actions: this.#actions };
  }

  /** What the last reset or step returned. */
  get lastResult(): StepResult<Observation> | null {
    return this.#lastResult;
  }

  /** Steps since the last reset. */
  get stepCount(): number {
    return this.#actions.length;
  }

  /** Whether an asynchronous operation is under way. */
  get busy(): boolean {
    return this.#running !== null;
  }

  /** Starts a new episode. */
  reset(options: ResetOptions): StepResult<Observation> | Promise<StepResult<Observation>> {
    return this.#alone(() =>
      andThen(this.environment.reset(options), (result) => {
        this.#episodeId = options.episode_id ?? randomUUID();
        this.#reset = options;
        this.#actions = [];
        this.#lastResult = result;
        return result;
      }),
    );
  }

  /**
   * Plays one valid action.
   * @throws EnvironmentError `NOT_RESET` before the first reset, `EPISODE_OVER` after the end, or the environment's own.
   */
  step(action: Action): StepResult<Observation> | Promise<StepResult<Observation>> {
    return this.#alone(() => {
      if (this.#lastResult === null) {
        throw new EnvironmentError(
          'NOT_RESET',
          'The session has no episode yet. Reset it before the first step.',
        );
      }
      if (this.#lastResult.done) {
        throw new EnvironmentError(
          'EPISODE_OVER',
          'The episode is over. Reset the session to start another.',
        );
      }
      return andThen(this.environment.step(action), (result) => {
        if (result.reward !== null && !Number.isFinite(result.reward)) {
          throw new TypeError(`Expected the environment to give a finite reward, got ${result.reward}.`);
        }
        this.#actions.push(action);
        this.#lastResult = result;
        return result;
      });
    });
  }

  /** The episode's identity and the environment's own state; before the first reset only the identity. */
  state(): StateBody | Promise<StateBody> {
    return this.#alone(() => {
      const identity = { episode_id: this.#episodeId, step_count: this.#actions.length };
      return this.#reset === null ? identity : { ...identity, ...this.environment.state(), ...identity };
    });
  }

  /** Waits for what is under way, then frees the environment. */
  async close(): Promise<void> {
    await this.#running;
    await this.environment.close?.();
  }

  #alone<T>(operation: () => T | Promise<T>): T | Promise<T> {
    this.lastUsedAt = Date.now();
    const outcome = this.#running === null ? operation() : this.#running.then(operation);
    if (!(outcome instanceof Promise)) return outcome;
    const settled: Promise<void> = outcome.then(
      () => this.#settle(settled),
      () => this.#settle(settled),
    );
    this.#running = settled;
    return outcome;
  }

  #settle(operation: Promise<void>): void {
    if (this.#running === operation) this.#running = null;
  }
}

function andThen<A, B>(value: A | Promise<A>, next: (value: A) => B): B | Promise<B> {
  return value instanceof Promise ? value.then(next) : next(value);
}
