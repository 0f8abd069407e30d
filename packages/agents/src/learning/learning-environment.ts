/** The episode goes on. */
export const RUNNING = 0;
/** The episode ended for good: nothing is earned after it. */
export const TERMINATED = 1;
/** The episode was cut off by a time limit: the value of the last observation stands for what would have come. */
export const TRUNCATED = 2;

/** How an action left the episode: `RUNNING`, `TERMINATED` or `TRUNCATED`. */
export type EpisodeEnd = typeof RUNNING | typeof TERMINATED | typeof TRUNCATED;

/** What an action earned. */
export interface LearningStep {
  readonly reward: number;
  readonly end: EpisodeEnd;
}

/** An environment as a learner sees it: numbers in, bins out. */
export interface LearningEnvironment {
  /** Numbers in an observation. */
  readonly observationSize: number;
  /** Bins of each head of an action. */
  readonly headSizes: readonly number[];
  /** Bins in force right after a reset. */
  readonly initialBins: readonly number[];
  /** Starts an episode on the trace of `seed` and writes its first observation. */
  reset(seed: number, observation: Float32Array): void;
  /** Plays an action, one bin a head, and writes the observation that it led to. */
  step(action: Int32Array, observation: Float32Array): LearningStep;
}
