import { addServeTask, llmserve, parseServeTask } from '@servegym/environments';
import { decodeCheckpoint, encodeCheckpoint, type PpoCheckpoint } from '../learning/ppo-checkpoint.ts';
import type { DemonstratedEpisode } from '../llmserve/learn/demonstrate.ts';
import { decodeDemonstrations, encodeDemonstrations } from '../llmserve/learn/demonstrations-file.ts';
import { TrainedPolicyError } from '../llmserve/learn/trained-policy-error.ts';
import { findOwnTask } from '../llmserve/shared-inputs.ts';
import {
  LEARNABLE_TASKS,
  type LearnableEnvironment,
  learningTaskOf,
  type TrainingRun,
} from './training-run.ts';

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
  const { taskId: task, environment, recipe, metadata } = learningTaskOf(run);
  const ownTask = environment.id === llmserve.id ? findOwnTask(String(task)) : undefined;
  const described = { algorithm, steps, seed, task, ...(ownTask && { own_task: ownTask }), recipe };
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
 * @throws TensorFileError when it is no such file
 * @throws TrainedPolicyError when the run cannot go on as it began
 * @throws ServeTaskError when its task is none
 */
export function decodeStoppedRun(file: Uint8Array, source: string): StoppedRun {
  const { metadata, stoppedAt } = decode(file);
  const { run: described, ...belongs } = metadata;
  const { algorithm, steps, seed, task, own_task, recipe, lessons } = JSON.parse(described ?? '{}');
  if (own_task !== undefined) addOwnTask(own_task, source);
  const { environment } = belongs;
  if (!isLearnable(environment)) {
    throw new TrainedPolicyError(
      `Expected a run on one of ${Object.keys(LEARNABLE_TASKS).join(', ')}, got ${environment}`,
    );
  }
  const run = { environment, task: String(task), algorithm, steps, seed, ...(lessons && { lessons }) };
  const expected = learningTaskOf(run);
  for (const [what, wanted, got] of [
    ['environment', JSON.stringify(expected.metadata), JSON.stringify(belongs)],
    ['recipe', JSON.stringify(expected.recipe), JSON.stringify(recipe)],
  ] as const) {
    if (got !== wanted) {
      throw new TrainedPolicyError(
        `Expected a run with this version's ${what}, ${wanted}, got ${got}: train anew`,
      );
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
  const task = parseServeTask(candidate, source);
  try {
    addServeTask(task);
  } catch (error) {
    throw new TrainedPolicyError((error as Error).message);
  }
}
