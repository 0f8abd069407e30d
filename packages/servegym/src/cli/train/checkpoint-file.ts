import { renameSync, writeFileSync } from 'node:fs';
import {
  type DemonstratedEpisode,
  decodeCheckpoint,
  decodeDemonstrations,
  encodeCheckpoint,
  encodeDemonstrations,
  type LearningTask,
  type PpoCheckpoint,
  SERVE_FINE_TUNING,
  serveLearningTask,
  TensorFileError,
} from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { addTask } from '../arguments/load-task.ts';
import { readInputBytes } from '../arguments/read-input-file.ts';
import { InputError } from '../input-error.ts';
import { findOwnTask } from '../jobs/job-task.ts';
import { LEARNING_TASKS } from './learning-tasks.ts';
import type { Lessons, NetworkAlgorithm } from './training-plan.ts';

interface Run {
  readonly learningTask: LearningTask;
  readonly algorithm: NetworkAlgorithm;
  readonly steps: number;
  readonly seed: number;
}

/** A run that stopped while it learned by PPO. */
export interface StoppedPpo extends Run {
  readonly checkpoint: PpoCheckpoint;
}

/** A run of `distill` that stopped before the last lesson. */
export interface StoppedLessons extends Run {
  readonly lessons: Lessons;
  /** What the lessons so far have shown. */
  readonly shown: readonly DemonstratedEpisode[];
}

/** A run that stopped. */
export type StoppedRun = StoppedPpo | StoppedLessons;

/** Where a run is, as a file that `readCheckpoint` reads. */
export function encodeRun(stopped: StoppedRun): Uint8Array {
  const { learningTask, algorithm, steps, seed } = stopped;
  const { taskId: task, environment, recipe } = learningTask;
  const ownTask = environment.id === llmserve.id ? findOwnTask(String(task)) : undefined;
  const run = { algorithm, steps, seed, task, ...(ownTask && { own_task: ownTask }), recipe };
  if ('checkpoint' in stopped) {
    return encodeCheckpoint(stopped.checkpoint, { ...learningTask.metadata, run: JSON.stringify(run) });
  }
  const { lessons, shown } = stopped;
  return encodeDemonstrations(shown, { ...learningTask.metadata, run: JSON.stringify({ ...run, lessons }) });
}

/** Writes where a run is; a crash leaves the file that was there. */
export function writeCheckpoint(path: string, run: StoppedRun): void {
  writeFileSync(`${path}.part`, encodeRun(run));
  renameSync(`${path}.part`, path);
}

/**
 * Reads a run that stopped, and makes a task of one's own known as it was when the run began, whatever its file has become.
 * @throws InputError when there is none, or when it cannot go on as it began
 */
export async function readCheckpoint(path: string): Promise<StoppedRun> {
  const { metadata, ...where } = decode(path, await readInputBytes(path));
  const { run, ...belongs } = metadata;
  const { algorithm, steps, seed, task, own_task, recipe, lessons } = JSON.parse(run ?? '{}');
  if (own_task !== undefined) addTask(own_task, path);
  const learningTask = findRun(belongs.environment, algorithm, task);
  if (learningTask === undefined) {
    throw new InputError(
      `${path}: expected a run on one of ${Object.keys(LEARNING_TASKS).join(', ')}, got ${belongs.environment}`,
    );
  }
  for (const [what, expected, got] of [
    ['environment', JSON.stringify(learningTask.metadata), JSON.stringify(belongs)],
    ['recipe', JSON.stringify(learningTask.recipe), JSON.stringify(recipe)],
  ] as const) {
    if (got !== expected) {
      throw new InputError(
        `${path}: expected a run with this version's ${what}, ${expected}, got ${got}: train anew`,
      );
    }
  }
  const stopped = { learningTask, algorithm, steps, seed };
  return 'checkpoint' in where ? { ...stopped, ...where } : { ...stopped, ...where, lessons };
}

function findRun(environment: string | undefined, algorithm: NetworkAlgorithm, task: unknown) {
  if (algorithm === 'distill') return serveLearningTask(String(task), SERVE_FINE_TUNING);
  return LEARNING_TASKS[environment ?? '']?.find(String(task));
}

function decode(path: string, bytes: Uint8Array) {
  try {
    const demonstrations = decodeDemonstrations(bytes);
    if (demonstrations === null) return decodeCheckpoint(bytes);
    return { shown: demonstrations.episodes, metadata: demonstrations.metadata };
  } catch (error) {
    if (error instanceof TensorFileError) throw new InputError(`${path}: ${error.message}`);
    throw error;
  }
}
