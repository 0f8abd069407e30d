import { type LearningEnvironment, RUNNING } from './learning-environment.ts';

/** Several environments that step together. An episode that ends is followed by the next one at once. */
export interface VectorEnvironment extends Readonly<VectorState> {
  readonly count: number;
  readonly observationSize: number;
  readonly headSizes: readonly number[];
  /** Plays an action in each, [count x heads]. */
  step(actions: Int32Array): void;
}

/** What the environments show, one row each. */
export interface VectorState {
  /** What the next actions are chosen on, [count x observationSize]. */
  observations: Float32Array;
  /** Bins in force: the last actions, or the initial ones after a reset, [count x heads]. */
  binsInForce: Int32Array;
  /** Where an episode has just ended: its last observation. `observations` has the first of the next one. */
  lastObservations: Float32Array;
  /** Seed of the episode that the next action is played in. */
  seeds: Float64Array;
  /** Windows of that episode played so far. */
  stepIndices: Int32Array;
  /** Of the last actions. */
  rewards: Float64Array;
  ends: Uint8Array;
}

/** What the rows of a state measure. */
export interface VectorSize {
  readonly count: number;
  readonly observationSize: number;
  readonly headCount: number;
}

/** An empty state; on memory that threads can share if `shared`. */
export function allocateState(
  { count, observationSize, headCount }: VectorSize,
  shared = false,
): VectorState {
  const bytes = (length: number) => (shared ? new SharedArrayBuffer(length) : new ArrayBuffer(length));
  return {
    observations: new Float32Array(bytes(4 * count * observationSize)),
    binsInForce: new Int32Array(bytes(4 * count * headCount)),
    lastObservations: new Float32Array(bytes(4 * count * observationSize)),
    seeds: new Float64Array(bytes(8 * count)),
    stepIndices: new Int32Array(bytes(4 * count)),
    rewards: new Float64Array(bytes(8 * count)),
    ends: new Uint8Array(bytes(count)),
  };
}

/** The rows of environments `first` to `end`, the latter not included. */
export function sliceState(
  state: VectorState,
  { observationSize, headCount }: VectorSize,
  first: number,
  end: number,
): VectorState {
  return {
    observations: state.observations.subarray(first * observationSize, end * observationSize),
    binsInForce: state.binsInForce.subarray(first * headCount, end * headCount),
    lastObservations: state.lastObservations.subarray(first * observationSize, end * observationSize),
    seeds: state.seeds.subarray(first, end),
    stepIndices: state.stepIndices.subarray(first, end),
    rewards: state.rewards.subarray(first, end),
    ends: state.ends.subarray(first, end),
  };
}

/** Environments that take turns on the calling thread. */
export class SerialEnvironments implements VectorEnvironment {
  readonly count: number;
  readonly observationSize: number;
  readonly headSizes: readonly number[];
  readonly observations: Float32Array;
  readonly binsInForce: Int32Array;
  readonly lastObservations: Float32Array;
  readonly seeds: Float64Array;
  readonly stepIndices: Int32Array;
  readonly rewards: Float64Array;
  readonly ends: Uint8Array;
  readonly #environments: readonly LearningEnvironment[];
  readonly #nextSeed: (environment: number) => number;

  /**
   * @param nextSeed is asked for the trace of each episode that an environment starts
   * @param state where to show what happens; memory of its own by default
   */
  constructor(
    environments: readonly LearningEnvironment[],
    nextSeed: (environment: number) => number,
    state?: VectorState,
  ) {
    const [first] = environments;
    if (first === undefined) throw new RangeError('Expected at least one environment');
    this.#environments = environments;
    this.#nextSeed = nextSeed;
    this.count = environments.length;
    this.observationSize = first.observationSize;
    this.headSizes = first.headSizes;
    const { count, observationSize } = this;
    const shown = state ?? allocateState({ count, observationSize, headCount: this.headSizes.length });
    this.observations = shown.observations;
    this.binsInForce = shown.binsInForce;
    this.lastObservations = shown.lastObservations;
    this.seeds = shown.seeds;
    this.stepIndices = shown.stepIndices;
    this.rewards = shown.rewards;
    this.ends = shown.ends;
    for (let e = 0; e < this.count; e++) this.#startEpisode(e);
  }

  step(actions: Int32Array): void {
    const heads = this.headSizes.length;
    this.binsInForce.set(actions);
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
    const environment = this.#environments[e]!;
    this.binsInForce.set(environment.initialBins, e * this.headSizes.length);
    environment.reset(seed, this.#row(this.observations, e));
  }

  #row(rows: Float32Array, e: number): Float32Array {
    return rows.subarray(e * this.observationSize, (e + 1) * this.observationSize);
  }
}
