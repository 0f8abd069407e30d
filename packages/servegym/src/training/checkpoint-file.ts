import { renameSync, writeFileSync } from 'node:fs';
import {
  decodeCheckpoint,
  encodeCheckpoint,
  type LearningTask,
  type PpoCheckpoint,
  SERVE_FINE_TUNING,
  serveLearningTask,
  TensorFileError,
} from '@servegym/agents';
import type { TaskId } from '@servegym/environments';
import { InputError } from '../input-error.ts';
import { readInputBytes } from '../read-input-file.ts';
import { LEARNING_TASKS } from './learning-tasks.ts';
import type { NetworkAlgorithm } from './training-plan.ts';

/** A run that stopped. */
export interface StoppedRun {
  readonly learningTask: LearningTask;
  readonly algorithm: NetworkAlgorithm;
  readonly steps: number;
  readonly seed: number;
  readonly checkpoint: PpoCheckpoint;
}

/** Where a run is, as a file that `readCheckpoint` reads. */
export function encodeRun({ learningTask, algorithm, steps, seed, checkpoint }: StoppedRun): Uint8Array {
  const run = { algorithm, steps, seed, task: learningTask.taskId, recipe: learningTask.recipe };
  return encodeCheckpoint(checkpoint, { ...learningTask.metadata, run: JSON.stringify(run) });
}

/** Writes where a run is; a crash leaves the file that was there. */
export function writeCheckpoint(path: string, run: StoppedRun): void {
  writeFileSync(`${path}.part`, encodeRun(run));
  renameSync(`${path}.part`, path);
}

/** Reads a run that stopped. @throws InputError when there is none, or when it cannot go on as it began */
export async function readCheckpoint(path: string): Promise<StoppedRun> {
  const { checkpoint, metadata } = decode(path, await readInputBytes(path));
  const { run, ...belongs } = metadata;
  const { algorithm, steps, seed, task, recipe } = JSON.parse(run ?? '{}');
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
  return { learningTask, algorithm, steps, seed, checkpoint };
}

function findRun(environment: string | undefined, algorithm: NetworkAlgorithm, task: unknown) {
  if (algorithm === 'distill') return serveLearningTask(task as TaskId, SERVE_FINE_TUNING);
  return LEARNING_TASKS[environment ?? '']?.find(String(task));
}

function decode(path: string, bytes: Uint8Array): ReturnType<typeof decodeCheckpoint> {
  try {
    return decodeCheckpoint(bytes);
  } catch (error) {
    if (error instanceof TensorFileError) throw new InputError(`${path}: ${error.message}`);
    throw error;
  }
}
