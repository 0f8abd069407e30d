import { SEED_SPLITS, type TaskId } from '@servegym/environments';
import { ParallelEnvironments } from '../learning/parallel-environments.ts';
import { PPO_DEFAULTS, Ppo, type PpoOptions, type PpoUpdate } from '../learning/ppo.ts';
import { simdKernels } from '../learning/simd-kernels.ts';
import type { ServeActor } from './serve-actor.ts';

/** How PPO learns `llmserve`, where it differs from `PPO_DEFAULTS`. */
export const SERVE_PPO = {
  ...PPO_DEFAULTS,
  // A change of weights costs a reload: policies that change at random serve nobody, and learn nothing but that.
  keepBonus: [4, 1],
  gamma: 0.95,
  entropyCoef: [0.003, 0],
} as const satisfies Omit<PpoOptions, 'seed' | 'totalSteps'>;

/** Environments that are played side by side. */
const ENVIRONMENTS = 32;

export interface TrainServePpoOptions {
  readonly taskId: TaskId;
  /** Windows to learn from, over all environments; rounded up to whole rollouts. */
  readonly steps: number;
  readonly seed: number;
  /** Threads that play; the result does not depend on it. */
  readonly threads: number;
  /** Ends the training after the update at hand; what has been learned is kept. */
  readonly signal?: AbortSignal;
  /** Called after each update. */
  readonly onUpdate?: (update: PpoUpdate) => void;
}

/** Trains a network with PPO on the training split of a task. */
export async function trainServePpo(options: TrainServePpoOptions): Promise<ServeActor> {
  const { taskId, steps, seed, threads, signal, onUpdate } = options;
  const environments = await ParallelEnvironments.start({
    count: ENVIRONMENTS,
    threads,
    module: new URL('serve-learning-environment.ts', import.meta.url),
    settings: taskId,
    schedule: { seed, groupSize: SERVE_PPO.groupSize, traces: SEED_SPLITS.train },
  });
  try {
    const ppo = new Ppo(environments, simdKernels(), { ...SERVE_PPO, seed, totalSteps: steps });
    while (!ppo.finished && !signal?.aborted) {
      const update = ppo.update();
      onUpdate?.(update);
      // Rollouts block the thread: let progress be shown and signals be heard between them.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { taskId, weights: ppo.actorWeights(), training: { algorithm: 'ppo', steps: ppo.steps, seed } };
  } finally {
    await environments.close();
  }
}
