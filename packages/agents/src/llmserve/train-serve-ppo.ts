import { SEED_SPLITS, type TaskId } from '@servegym/environments';
import { PPO_DEFAULTS } from '../learning/ppo.ts';
import { type PpoRecipe, type PpoTraining, trainPpo } from '../learning/train-ppo.ts';
import type { ServeActor } from './serve-actor.ts';

/** How PPO learns `llmserve`, where it differs from `PPO_DEFAULTS`. */
export const SERVE_PPO = {
  ...PPO_DEFAULTS,
  environments: 32,
  rolloutSteps: 64,
  hidden: [64, 64],
  // A change of weights costs a reload: policies that change at random serve nobody, and learn nothing but that.
  keepBonus: [4, 1],
  gamma: 0.95,
  entropyCoef: [0.003, 0],
} as const satisfies PpoRecipe;

export interface TrainServePpoOptions
  extends Pick<PpoTraining, 'steps' | 'seed' | 'threads' | 'start' | 'signal' | 'onUpdate'> {
  readonly taskId: TaskId;
}

/** Trains a network with PPO on the training split of a task. */
export async function trainServePpo({ taskId, ...options }: TrainServePpoOptions): Promise<ServeActor> {
  const { weights, steps } = await trainPpo({
    ...options,
    recipe: SERVE_PPO,
    module: new URL('serve-learning-environment.ts', import.meta.url),
    settings: taskId,
    traces: SEED_SPLITS.train,
  });
  return { taskId, weights, training: { algorithm: 'ppo', steps, seed: options.seed } };
}
