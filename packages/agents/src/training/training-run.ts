import { GYM_TASK_IDS, type GymTaskId, type ServeScenario, TASK_IDS } from '@servegym/environments';
import { gymLearningTask, type OwnTable } from '../inferencegym/learn/gym-learning-task.ts';
import type { LearningTask } from '../learning/learning-task.ts';
import { SERVE_FINE_TUNING, SERVE_PPO, serveLearningTask } from '../llmserve/learn/serve-learning-task.ts';

/** PPO from random weights, or from a clone of a teacher. */
export type NetworkAlgorithm = 'ppo' | 'distill';
/** Networks, a configuration for each regime of traffic by cross-entropy search, and one configuration for all. */
export type Algorithm = NetworkAlgorithm | 'cem' | 'static';

export function isNetworkAlgorithm(algorithm: Algorithm): algorithm is NetworkAlgorithm {
  return algorithm === 'ppo' || algorithm === 'distill';
}

/** The teacher of `distill`, and its lessons. */
export interface Lessons {
  /** A policy of the catalogue. */
  readonly teacher: string;
  /** Episodes that the teacher plays or comments on. */
  readonly episodes: number;
  /** Minibatches that the clone learns from in each round, where the default is too many. */
  readonly minibatches?: number;
}

/** A training: one policy, learned by one algorithm on one task with one seed. */
export interface TrainingRun {
  readonly environment: LearnableEnvironment;
  /** A task of `environment` that this process knows. */
  readonly task: string;
  readonly algorithm: Algorithm;
  /** Windows to learn from; `static` plays as many as it takes. */
  readonly steps: number;
  /** Seed of weights, exploration and traffic. */
  readonly seed: number;
  /** For `distill`. */
  readonly lessons?: Lessons;
  /** Traffic, trace and shift: `ppo` on `llmserve`. */
  readonly scenario?: ServeScenario;
  /** A table of one's own: `ppo` on `inferencegym`. */
  readonly table?: OwnTable;
}

export type LearnableEnvironment = 'llmserve' | 'inferencegym';

/** Tasks that come with the environments that policies are trained on. */
export const LEARNABLE_TASKS: Readonly<Record<LearnableEnvironment, readonly string[]>> = {
  llmserve: TASK_IDS,
  inferencegym: GYM_TASK_IDS.map(String),
};

/** The environment, recipe and file format of a run that trains a network. */
export function learningTaskOf({
  environment,
  task,
  algorithm,
  scenario,
  table,
}: Omit<TrainingRun, 'steps' | 'seed'>): LearningTask {
  if (environment === 'inferencegym') return gymLearningTask(Number(task) as GymTaskId, table);
  return serveLearningTask(task, algorithm === 'distill' ? SERVE_FINE_TUNING : SERVE_PPO, scenario);
}

/** Figures of a training up to a point: a line of `metrics.jsonl`, less the times. */
export interface MetricsLine {
  /** Windows learned from so far. */
  readonly steps: number;
  /** Mean return of the episodes that ended since the last line; `null` when none did. */
  readonly mean_return: number | null;
  readonly [metric: string]: number | null;
}

/** Mean return of the last episodes that ended; `null` when none did. */
export function finalReturn(lines: readonly MetricsLine[]): number | null {
  return lines.findLast((line) => line.mean_return !== null)?.mean_return ?? null;
}
