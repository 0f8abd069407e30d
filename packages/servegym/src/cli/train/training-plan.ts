import type { LearningTask } from '@servegym/agents';

/** What to learn, and where to write it. */
export interface TrainingPlan {
  /** Its id; this process knows it. */
  readonly task: string;
  /** Windows to learn from, where the algorithm can tell in advance. */
  readonly steps: number;
  readonly seed: number;
  readonly threads: number;
  /** Who plays instead, where an algorithm has jobs for others. */
  readonly queue?: string;
  /** It exists. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** PPO from scratch, or from a clone of a teacher. */
export type NetworkAlgorithm = 'ppo' | 'distill';
/** These, the search of a configuration for each regime of traffic, and of one for all. */
export type Algorithm = NetworkAlgorithm | 'cem' | 'static';

export function isNetworkAlgorithm(algorithm: Algorithm): algorithm is NetworkAlgorithm {
  return algorithm === 'ppo' || algorithm === 'distill';
}

/** Whom `distill` learns from, and how much. */
export interface Lessons {
  /** A policy of the catalogue. */
  readonly teacher: string;
  /** That the teacher plays or comments on. */
  readonly episodes: number;
  /** That the clone learns from in each round, where the default is too many. */
  readonly minibatches?: number;
}

/** What a network is to learn. */
export interface NetworkTrainingPlan extends Omit<TrainingPlan, 'task'> {
  readonly learningTask: LearningTask;
  readonly algorithm: NetworkAlgorithm;
}

/** What came of it. */
export interface TrainingReport {
  /** Windows played. */
  readonly steps: number;
  /** Mean return of an episode, as training last saw it; `null` when no episode ended. */
  readonly final_return: number | null;
  readonly files: { readonly policy: string; readonly [kind: string]: string };
}
