import {
  decodeServeActor,
  encodeRegimeTable,
  playRegimes,
  type RegimeTrial,
  SERVE_FINE_TUNING,
  type ShippedName,
  searchRegimes,
  serveLearningTask,
  trainPpo,
} from '@servegym/agents';
import type { TaskId } from '@servegym/environments';

/** A policy to be learned, on one thread. */
export interface LearningRun {
  readonly algorithm: ShippedName;
  readonly taskId: TaskId;
  readonly seed: number;
  /** Windows to learn from. */
  readonly steps: number;
}

/**
 * The file of a policy, as `servegym train` with the same algorithm and seed writes it.
 * @param clone for `distilled`: the file of the network that a teacher was cloned into
 */
export async function learnPolicy(run: LearningRun, clone?: Uint8Array): Promise<Uint8Array> {
  switch (run.algorithm) {
    case 'cem':
      return learnRegimes(run);
    case 'ppo':
      return learnNetwork(run);
    case 'distilled':
      if (clone === undefined) throw new TypeError('Expected a clone of the teacher to go on from');
      return goOnFrom(clone, run);
  }
}

async function learnRegimes({ taskId, steps, seed }: LearningRun): Promise<Uint8Array> {
  const play = async (trials: readonly RegimeTrial[]) => trials.map(playRegimes);
  return new TextEncoder().encode(encodeRegimeTable(await searchRegimes({ taskId, steps, seed, play })));
}

async function learnNetwork({ taskId, steps, seed }: LearningRun): Promise<Uint8Array> {
  const task = serveLearningTask(taskId);
  const trained = await trainPpo({ ...task, steps, seed, threads: 1 });
  return task.encodeActor(trained.weights, { algorithm: 'ppo', steps: trained.steps, seed });
}

async function goOnFrom(clone: Uint8Array, { taskId, steps, seed }: LearningRun): Promise<Uint8Array> {
  const task = serveLearningTask(taskId, SERVE_FINE_TUNING);
  const start = { actor: decodeServeActor(clone).weights };
  const trained = await trainPpo({ ...task, steps, seed, threads: 1, start });
  return task.encodeActor(trained.weights, { algorithm: 'distill', steps: trained.steps, seed });
}
