import { renameSync, writeFileSync } from 'node:fs';
import {
  decodeCheckpoint,
  encodeCheckpoint,
  type LearningTask,
  type PpoCheckpoint,
  TensorFileError,
} from '@servegym/agents';
import { InputError } from '../input-error.ts';
import { readInputBytes } from '../read-input-file.ts';
import { LEARNING_TASKS } from './learning-tasks.ts';

/** A run that stopped. */
export interface StoppedRun {
  readonly learningTask: LearningTask;
  readonly steps: number;
  readonly seed: number;
  readonly checkpoint: PpoCheckpoint;
}

/** Writes where a run is; a crash leaves the file that was there. */
export function writeCheckpoint(path: string, { learningTask, steps, seed, checkpoint }: StoppedRun): void {
  const run = { steps, seed, task: learningTask.taskId, recipe: learningTask.recipe };
  writeFileSync(
    `${path}.part`,
    encodeCheckpoint(checkpoint, { ...learningTask.metadata, run: JSON.stringify(run) }),
  );
  renameSync(`${path}.part`, path);
}

/** Reads a run that stopped. @throws InputError when there is none, or when it cannot go on as it began */
export async function readCheckpoint(path: string): Promise<StoppedRun> {
  const { checkpoint, metadata } = decode(path, await readInputBytes(path));
  const { run, ...belongs } = metadata;
  const { steps, seed, task, recipe } = JSON.parse(run ?? '{}');
  const learningTask = LEARNING_TASKS[belongs.environment ?? '']?.find(String(task));
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
  return { learningTask, steps, seed, checkpoint };
}

function decode(path: string, bytes: Uint8Array): ReturnType<typeof decodeCheckpoint> {
  try {
    return decodeCheckpoint(bytes);
  } catch (error) {
    if (error instanceof TensorFileError) throw new InputError(`${path}: ${error.message}`);
    throw error;
  }
}
