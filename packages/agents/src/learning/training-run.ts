import { findEnvironment, type ServeScenario } from '@servegym/environments';
import { EnvironmentError } from '@servegym/openenv/definition';
import type { OwnTable } from '../core/playable.ts';
import { type DemonstratedEpisode, decodeDemonstrations, encodeDemonstrations } from './demonstrate.ts';
import { ANY_SERVER } from './learners.ts';
import type { LearningTask } from './learning-environment.ts';
import { LEARNABLE, type LearnableEnvironment, SERVE_FINE_TUNING } from './learning-tasks.ts';
import { decodeCheckpoint, encodeCheckpoint, type PpoCheckpoint } from './ppo-checkpoint.ts';

/** PPO from random weights, or from a clone of a teacher. */
export type NetworkAlgorithm = 'ppo' | 'distill';
/** Networks, rollouts of a rule, a search by the cross-entropy method, and the best configuration that never changes. */
export type Algorithm = NetworkAlgorithm | 'rollout' | 'cem' | 'static';

export function isNetworkAlgorithm(algorithm: Algorithm): algorithm is NetworkAlgorithm {
  return algorithm === 'ppo' || algorithm === 'distill';
}

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
  /** The teacher of `distill`, and its lessons. */
  readonly lessons?: {
    /** A policy of the catalogue. */
    readonly teacher: string;
    /** Episodes that the teacher plays or comments on. */
    readonly episodes: number;
    /** Minibatches that the clone learns from in each round, where the default is too many. */
    readonly minibatches?: number;
  };
  /** Traffic, trace and shift: `ppo` on `llmserve`. */
  readonly scenario?: ServeScenario;
  /** A table of one's own: `ppo` on `inferencegym`. */
  readonly table?: OwnTable;
}

/** The environment, recipe and file format of a run that trains a network. */
export function learningTaskOf({
  environment,
  algorithm,
  ...plan
}: Omit<TrainingRun, 'steps' | 'seed'>): LearningTask {
  const recipe = algorithm === 'distill' ? SERVE_FINE_TUNING : undefined;
  const learned = plan.task === ANY_SERVER ? 'any-server' : environment;
  return LEARNABLE[learned].learningTask({ ...plan, recipe });
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

/** Point that a run of a network stopped at: in PPO, or between two lessons of `distill`. */
export type StoppingPoint =
  | { readonly checkpoint: PpoCheckpoint }
  | {
      /** All that the lessons so far have shown. */
      readonly shown: readonly DemonstratedEpisode[];
    };

/** A run and the point it stopped at. */
export interface StoppedRun {
  readonly run: TrainingRun;
  readonly stoppedAt: StoppingPoint;
}

/** Writes a run that trains a network, with the point it is at, as safetensors. */
export function encodeStoppedRun({ run, stoppedAt }: StoppedRun): Uint8Array {
  const { algorithm, steps, seed, lessons } = run;
  const { taskId: task, recipe, metadata } = learningTaskOf(run);
  const { tasks } = findEnvironment(run.environment)!;
  const described = {
    algorithm,
    steps,
    seed,
    task,
    own_task: tasks.isOwn(task) ? tasks.find(task) : undefined,
    recipe,
  };
  if ('checkpoint' in stoppedAt) {
    return encodeCheckpoint(stoppedAt.checkpoint, { ...metadata, run: JSON.stringify(described) });
  }
  return encodeDemonstrations(stoppedAt.shown, {
    ...metadata,
    run: JSON.stringify({ ...described, lessons }),
  });
}

/**
 * Reads what `encodeStoppedRun` wrote, and makes a task of one's own known as it was when the run began.
 * @param source where the file comes from, for messages
 * @throws EnvironmentError `TENSOR_FILE` when it is no such file, `RUN_MISMATCH` when the run cannot go on as it began
 * @throws EnvironmentError `INVALID_TASK` when its task is none
 */
export function decodeStoppedRun(file: Uint8Array, source: string): StoppedRun {
  const { metadata, stoppedAt } = decode(file);
  const { run: described, ...belongs } = metadata;
  const { algorithm, steps, seed, task, own_task, recipe, lessons } = JSON.parse(described ?? '{}');
  const environment = belongs.environment as LearnableEnvironment;
  if (!Object.hasOwn(LEARNABLE, environment)) {
    throw mismatch(`on one of ${Object.keys(LEARNABLE).join(', ')}`, environment);
  }
  if (own_task !== undefined) addOwnTask(environment, own_task, source);
  const run: TrainingRun = {
    ...{ environment, task: String(task), algorithm, steps, seed },
    ...(lessons && { lessons }),
  };
  const expected = learningTaskOf(run);
  for (const [what, wanted, got] of [
    ['environment', JSON.stringify(expected.metadata), JSON.stringify(belongs)],
    ['recipe', JSON.stringify(expected.recipe), JSON.stringify(recipe)],
  ] as const) {
    if (got !== wanted) throw mismatch(`with this version's ${what}, ${wanted},`, got);
  }
  return { run, stoppedAt };
}

function mismatch(expected: string, got: unknown): EnvironmentError {
  return new EnvironmentError('RUN_MISMATCH', `Expected a run ${expected}, got ${got}: train anew`);
}

function decode(file: Uint8Array) {
  const demonstrations = decodeDemonstrations(file);
  if (demonstrations !== null) {
    const { episodes: shown, metadata } = demonstrations;
    return { stoppedAt: { shown }, metadata };
  }
  const { checkpoint, metadata } = decodeCheckpoint(file);
  return { stoppedAt: { checkpoint }, metadata };
}

function addOwnTask(environment: LearnableEnvironment, candidate: unknown, source: string): void {
  const { tasks } = findEnvironment(environment)!;
  const task = tasks.parse(candidate, source);
  try {
    tasks.add(task);
  } catch (error) {
    throw new EnvironmentError('POLICY_FILE', (error as Error).message);
  }
}
