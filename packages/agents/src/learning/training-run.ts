import type { ServeScenario } from '@servegym/environments';
import type { OwnTable } from '../core/playable.ts';
import { ANY_SERVER } from './learners.ts';
import type { LearningTask } from './learning-environment.ts';
import { LEARNABLE, type LearnableEnvironment } from './learning-tasks.ts';

/** A network, rollouts of a rule, a search by the cross-entropy method, and the best configuration that never changes. */
export type Algorithm = 'ppo' | 'rollout' | 'cem' | 'static';

/** A training: one policy, learned by one algorithm on one task with one seed. */
export interface TrainingRun {
  readonly environment: LearnableEnvironment;
  /** A task of `environment` that this process knows; `any`: any server of `llmserve`, on any of its tasks. */
  readonly task: string;
  readonly algorithm: Algorithm;
  /** Windows to learn from; `static` plays as many as it takes. */
  readonly steps: number;
  /** Seed of weights, exploration and traffic. */
  readonly seed: number;
  /** Traffic, trace and shift: `ppo` on `llmserve`. */
  readonly scenario?: ServeScenario;
  /** A table of one's own: `ppo` on `inferencegym`. */
  readonly table?: OwnTable;
}

/** The environment, recipe and file format of a run that trains a network. */
export function learningTaskOf({
  environment,
  ...plan
}: Omit<TrainingRun, 'algorithm' | 'steps' | 'seed'>): LearningTask {
  return LEARNABLE[plan.task === ANY_SERVER ? 'any-server' : environment].learningTask(plan);
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
