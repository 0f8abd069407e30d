import type { FloatArray, Kernels } from './kernels.ts';
import type { VectorEnvironment } from './vector-environment.ts';

/** What several environments played and earned; entry (t, e) is at `t * environments + e`. */
export class Rollout {
  readonly environments: number;
  readonly steps: number;
  /** Actions in it. */
  readonly size: number;
  readonly observationSize: number;
  readonly headCount: number;
  /** Normalized, as the policy saw them. */
  readonly observations: FloatArray;
  readonly binsInForce: Int32Array;
  readonly actions: Int32Array;
  readonly logProbabilities: Float64Array;
  readonly rewards: Float64Array;
  readonly ends: Uint8Array;
  /** Trace that the action was played on, and windows played before it. */
  readonly seeds: Float64Array;
  readonly stepIndices: Int32Array;
  readonly values: Float64Array;
  readonly nextValues: Float64Array;
  readonly advantages: Float64Array;
  /** What the critic should have said: discounted returns, as far as the advantages know them. */
  readonly targets: Float64Array;
  /** Entries after which the rollout does not go on, though the episode might have: its end, and time limits. */
  readonly boundaries: number[] = [];
  /** The normalized observations that they led to, in the same order. */
  readonly boundaryObservations: FloatArray;

  constructor(kernels: Kernels, environments: VectorEnvironment, steps: number) {
    this.environments = environments.count;
    this.steps = steps;
    this.size = steps * environments.count;
    this.observationSize = environments.observationSize;
    this.headCount = environments.headSizes.length;
    this.observations = kernels.allocate(this.size * this.observationSize);
    this.boundaryObservations = kernels.allocate(this.size * this.observationSize);
    this.binsInForce = new Int32Array(this.size * this.headCount);
    this.actions = new Int32Array(this.size * this.headCount);
    this.ends = new Uint8Array(this.size);
    this.stepIndices = new Int32Array(this.size);
    this.seeds = new Float64Array(this.size);
    this.logProbabilities = new Float64Array(this.size);
    this.rewards = new Float64Array(this.size);
    this.values = new Float64Array(this.size);
    this.nextValues = new Float64Array(this.size);
    this.advantages = new Float64Array(this.size);
    this.targets = new Float64Array(this.size);
  }

  /** The observations of `count` entries from `first`. */
  observationRows(first: number, count: number): FloatArray {
    return this.observations.subarray(first * this.observationSize, (first + count) * this.observationSize);
  }
}

/** Entries of a rollout, side by side. */
export class Minibatch {
  rows = 0;
  readonly observations: FloatArray;
  readonly binsInForce: Int32Array;
  readonly actions: Int32Array;
  readonly logProbabilities: Float64Array;
  readonly advantages: Float64Array;
  readonly targets: Float64Array;

  constructor(kernels: Kernels, maxRows: number, observationSize: number, headCount: number) {
    this.observations = kernels.allocate(maxRows * observationSize);
    this.binsInForce = new Int32Array(maxRows * headCount);
    this.actions = new Int32Array(maxRows * headCount);
    this.logProbabilities = new Float64Array(maxRows);
    this.advantages = new Float64Array(maxRows);
    this.targets = new Float64Array(maxRows);
  }

  /** Takes the given entries of `rollout`. */
  gather(rollout: Rollout, entries: Int32Array): void {
    const { observationSize, headCount } = rollout;
    this.rows = entries.length;
    for (let row = 0; row < entries.length; row++) {
      const at = entries[row]!;
      for (let i = 0; i < observationSize; i++) {
        this.observations[row * observationSize + i] = rollout.observations[at * observationSize + i]!;
      }
      for (let head = 0; head < headCount; head++) {
        this.binsInForce[row * headCount + head] = rollout.binsInForce[at * headCount + head]!;
        this.actions[row * headCount + head] = rollout.actions[at * headCount + head]!;
      }
      this.logProbabilities[row] = rollout.logProbabilities[at]!;
      this.advantages[row] = rollout.advantages[at]!;
      this.targets[row] = rollout.targets[at]!;
    }
  }
}
