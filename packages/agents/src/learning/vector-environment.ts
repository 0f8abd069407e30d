import { type LearningEnvironment, RUNNING } from './learning-environment.ts';

/** Several environments that step together. An episode that ends is followed by the next one at once. */
export interface VectorEnvironment {
  readonly count: number;
  readonly observationSize: number;
  readonly headSizes: readonly number[];
  /** What the next actions are chosen on, [count x observationSize]. */
  readonly observations: Float32Array;
  /** Seed of the episode that the next action is played in. */
  readonly seeds: Float64Array;
  /** Windows of that episode played so far. */
  readonly stepIndices: Int32Array;
  /** Of the last actions. */
  readonly rewards: Float64Array;
  readonly ends: Uint8Array;
  /** Where an episode has just ended: its last observation. `observations` has the first of the next one. */
  readonly lastObservations: Float32Array;
  /** Plays an action in each, [count x heads]. */
  step(actions: Int32Array): void;
}

/** Environments that take turns on the calling thread. */
export class SerialEnvironments implements VectorEnvironment {
  readonly count: number;
  readonly observationSize: number;
  readonly headSizes: readonly number[];
  readonly observations: Float32Array;
  readonly seeds: Float64Array;
  readonly stepIndices: Int32Array;
  readonly rewards: Float64Array;
  readonly ends: Uint8Array;
  readonly lastObservations: Float32Array;
  readonly #environments: readonly LearningEnvironment[];
  readonly #nextSeed: (environment: number) => number;

  /** `nextSeed` is asked for the trace of each episode that an environment starts. */
  constructor(environments: readonly LearningEnvironment[], nextSeed: (environment: number) => number) {
    const [first] = environments;
    if (first === undefined) throw new RangeError('Expected at least one environment');
    this.#environments = environments;
    this.#nextSeed = nextSeed;
    this.count = environments.length;
    this.observationSize = first.observationSize;
    this.headSizes = first.headSizes;
    this.observations = new Float32Array(this.count * this.observationSize);
    this.lastObservations = new Float32Array(this.count * this.observationSize);
    this.seeds = new Float64Array(this.count);
    this.stepIndices = new Int32Array(this.count);
    this.rewards = new Float64Array(this.count);
    this.ends = new Uint8Array(this.count);
    for (let e = 0; e < this.count; e++) this.#startEpisode(e);
  }

  step(actions: Int32Array): void {
    const heads = this.headSizes.length;
    for (let e = 0; e < this.count; e++) {
      const observation = this.#row(this.observations, e);
      const action = actions.subarray(e * heads, (e + 1) * heads);
      const { reward, end } = this.#environments[e]!.step(action, observation);
      this.rewards[e] = reward;
      this.ends[e] = end;
      this.stepIndices[e]!++;
      if (end === RUNNING) continue;
      this.#row(this.lastObservations, e).set(observation);
      this.#startEpisode(e);
    }
  }

  #startEpisode(e: number): void {
    const seed = this.#nextSeed(e);
    this.seeds[e] = seed;
    this.stepIndices[e] = 0;
    this.#environments[e]!.reset(seed, this.#row(this.observations, e));
  }

  #row(rows: Float32Array, e: number): Float32Array {
    return rows.subarray(e * this.observationSize, (e + 1) * this.observationSize);
  }
}
