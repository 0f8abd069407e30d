import type { Environment, ResetOptions, StepResult } from '../definition.ts';
import { Turn } from '../sessions/turns.ts';

const SEEDS = 2 ** 32;

/** Resets or steps one environment. */
type Play = (index: number) => StepResult<object> | Promise<StepResult<object>>;

/** Result of a reset or step of all environments, an entry for each. */
export interface VectorResult {
  readonly observations: object[];
  /** 0 where an episode has just been started. */
  readonly rewards: number[];
  readonly dones: boolean[];
}

/**
 * Several instances of one environment that step together. When an episode has ended, the next step of its environment
 * ignores the action and starts the next episode instead (Gymnasium's `AutoresetMode.NEXT_STEP`). With the base seed s
 * and n environments, episode k of environment i has the seed (s + k n + i) mod 2^32.
 */
export class VectorEnvironments {
  readonly #environments: readonly Environment<unknown, object, object>[];
  readonly #options: readonly ResetOptions[];
  readonly #client: string | undefined;
  readonly #episodes: number[];
  readonly #done: boolean[];
  /** True when the last reset or step of all took more than a turn. */
  #isLong = false;
  #isClosed = false;

  /**
   * @param options the reset options of each environment; their seeds are those of the first episodes
   * @param client digest of who plays them, for turns
   */
  constructor(
    environments: readonly Environment<unknown, object, object>[],
    options: readonly ResetOptions[],
    client?: string,
  ) {
    this.#client = client;
    this.#environments = environments;
    this.#options = options;
    this.#episodes = environments.map(() => 0);
    this.#done = environments.map(() => false);
  }

  /** Environments. */
  get size(): number {
    return this.#environments.length;
  }

  reset(): VectorResult | Promise<VectorResult> {
    this.#episodes.fill(0);
    return this.#collect((index) => this.#resetOne(index));
  }

  /** Plays an action on each environment whose episode goes on. */
  step(actions: readonly unknown[]): VectorResult | Promise<VectorResult> {
    return this.#collect((index) => {
      if (!this.#done[index]) return this.#environments[index].step(actions[index]);
      this.#episodes[index]++;
      return this.#resetOne(index);
    });
  }

  /** True when the next step of an environment ignores its action. */
  awaitsReset(index: number): boolean {
    return this.#done[index];
  }

  /** Frees the environments; a reset or step under way stops before the next one. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#environments.map(async (environment) => environment.close?.()));
  }

  #resetOne(index: number): StepResult<object> | Promise<StepResult<object>> {
    const options = this.#options[index];
    const seed = ((options.seed ?? 0) + this.#episodes[index] * this.size) % SEEDS;
    return this.#environments[index].reset({ ...options, seed });
  }

  #collect(play: Play): VectorResult | Promise<VectorResult> {
    const results: ReturnType<Play>[] = [];
    if (this.#isLong) return this.#collectInTurns(play, results);
    const turn = new Turn(this.#client);
    while (results.length < this.size) {
      if (turn.isOver) return this.#collectInTurns(play, results);
      results.push(play(results.length));
    }
    return results.some((result) => result instanceof Promise)
      ? Promise.all(results).then((all) => this.#gather(all))
      : this.#gather(results as StepResult<object>[]);
  }

  /** Goes on with the environments that have no result yet, in turns with other computations. */
  async #collectInTurns(play: Play, results: ReturnType<Play>[]): Promise<VectorResult> {
    const turn = new Turn(this.#client);
    let turns = 0;
    while (results.length < this.size) {
      if (turns === 0 || turn.isOver) {
        await turn.next();
        turns++;
      }
      if (this.#isClosed) throw new Error('The environments were closed.');
      results.push(play(results.length));
    }
    this.#isLong = turns > 1;
    return this.#gather(await Promise.all(results));
  }

  #gather(results: readonly StepResult<object>[]): VectorResult {
    const observations: object[] = [];
    const rewards: number[] = [];
    const dones: boolean[] = [];
    for (const [index, { observation, reward, done }] of results.entries()) {
      if (reward !== null && !Number.isFinite(reward)) {
        throw new TypeError(`Expected environment ${index} to give a finite reward, got ${reward}.`);
      }
      observations.push(observation);
      rewards.push(reward ?? 0);
      dones.push(done);
      this.#done[index] = done;
    }
    return { observations, rewards, dones };
  }
}
