import {
  type FleetTaskId,
  fleet,
  type GymTaskId,
  inferencegym,
  llmserve,
  type ServeScenario,
} from '@servegym/environments';
import { AgentError } from '../error-catalogue.ts';
import { fleetLearningTask } from './fleet-learning-task.ts';
import { gymLearningTask, type OwnTable } from './gym-learning-task.ts';
import type { LearningTask } from './learning-environment.ts';
import { decodeCheckpoint, encodeCheckpoint, type PpoCheckpoint } from './ppo-checkpoint.ts';
import {
  type DemonstratedEpisode,
  decodeDemonstrations,
  encodeDemonstrations,
} from './demonstrate.ts';
import { SERVE_FINE_TUNING, SERVE_PPO, serveLearningTask } from './serve-learning-task.ts';
import { findOwnTask } from '../core/shared-inputs.ts';

/** PPO from random weights, or from a clone of a teacher. */
export type NetworkAlgorithm = 'ppo' | 'distill';
/** Networks, a configuration for each regime of traffic by cross-entropy search, and one configuration for all. */
export type Algorithm = NetworkAlgorithm | 'cem' | 'static';

export function isNetworkAlgorithm(algorithm: Algorithm): algorithm is NetworkAlgorithm {
  return algorithm === 'ppo' || algorithm === 'distill';
}

/** The teacher of `distill`, and its lessons. */
export interface LessonPlan {
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
  readonly lessons?: LessonPlan;
  /** Traffic, trace and shift: `ppo` on `llmserve`. */
  readonly scenario?: ServeScenario;
  /** Draws server, traffic, rates and prompts anew for each trace: `ppo` on `llmserve`. */
  readonly randomise?: boolean;
  /** A table of one's own: `ppo` on `inferencegym`. */
  readonly table?: OwnTable;
}

export type LearnableEnvironment = 'llmserve' | 'inferencegym' | 'fleet';

/** Tasks that come with the environments that policies are trained on. */
export const LEARNABLE_TASKS: Readonly<Record<LearnableEnvironment, readonly string[]>> = {
  llmserve: llmserve.tasks.shippedIds,
  inferencegym: inferencegym.tasks.shippedIds.map(String),
  fleet: fleet.tasks.shippedIds,
};

/** Algorithms that learn an environment. */
export const ALGORITHMS_OF: Readonly<Record<LearnableEnvironment, readonly Algorithm[]>> = {
  llmserve: ['ppo', 'distill', 'cem', 'static'],
  inferencegym: ['ppo'],
  fleet: ['ppo', 'cem'],
};

/** The environment, recipe and file format of a run that trains a network. */
export function learningTaskOf({
  environment,
  task,
  algorithm,
  scenario,
  randomise,
  table,
}: Omit<TrainingRun, 'steps' | 'seed'>): LearningTask {
  if (environment === 'fleet') return fleetLearningTask(task as FleetTaskId);
  if (environment === 'inferencegym') return gymLearningTask(Number(task) as GymTaskId, table);
  return serveLearningTask(
    task,
    algorithm === 'distill' ? SERVE_FINE_TUNING : SERVE_PPO,
    scenario,
    randomise,
  );
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
  const { algorithm, steps, seed, lessons, randomise } = run;
  const { taskId: task, environment, recipe, metadata } = learningTaskOf(run);
  const ownTask = environment.id === llmserve.id ? findOwnTask(String(task)) : undefined;
  const described = {
    algorithm,
    steps,
    seed,
    task,
    ...(ownTask && { own_task: ownTask }),
    recipe,
    ...(randomise && { randomise }),
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
 * @throws AgentError `TENSOR_FILE` when it is no such file
 * @throws AgentError `RUN_MISMATCH` when the run cannot go on as it began
 * @throws TaskError when its task is none
 */
export function decodeStoppedRun(file: Uint8Array, source: string): StoppedRun {
  const { metadata, stoppedAt } = decode(file);
  const { run: described, ...belongs } = metadata;
  const { algorithm, steps, seed, task, own_task, recipe, lessons, randomise } = JSON.parse(
    described ?? '{}',
  );
  if (own_task !== undefined) addOwnTask(own_task, source);
  const { environment } = belongs;
  if (!isLearnable(environment)) {
    const expected = `on one of ${Object.keys(LEARNABLE_TASKS).join(', ')}`;
    throw new AgentError('RUN_MISMATCH', { expected, got: environment });
  }
  const run = {
    environment,
    task: String(task),
    algorithm,
    steps,
    seed,
    ...(lessons && { lessons }),
    ...(randomise && { randomise }),
  };
  const expected = learningTaskOf(run);
  for (const [what, wanted, got] of [
    ['environment', JSON.stringify(expected.metadata), JSON.stringify(belongs)],
    ['recipe', JSON.stringify(expected.recipe), JSON.stringify(recipe)],
  ] as const) {
    if (got !== wanted) {
      throw new AgentError('RUN_MISMATCH', { expected: `with this version's ${what}, ${wanted},`, got });
    }
  }
  return { run, stoppedAt };
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

function isLearnable(environment: string | undefined): environment is LearnableEnvironment {
  return environment !== undefined && Object.hasOwn(LEARNABLE_TASKS, environment);
}

function addOwnTask(candidate: unknown, source: string): void {
  const task = llmserve.tasks.parse(candidate, source);
  try {
    llmserve.tasks.add(task);
  } catch (error) {
    throw new AgentError('POLICY_FILE', { problem: (error as Error).message }, { cause: error });
  }
}
