import type { Kernels } from './kernels.ts';
import { Ppo, type PpoOptions, type PpoStart, type PpoUpdate } from './ppo.ts';
import { type PpoCheckpoint, resumePoint } from './ppo-checkpoint.ts';
import { RolloutThreads } from './rollout-threads.ts';
import { simdKernels } from './simd-kernels.ts';
import type { TraceSchedule } from './trace-schedule.ts';
import type { ActorWeights } from './trained-actor.ts';

/** How a family of environments is learned. */
export interface PpoRecipe extends Omit<PpoOptions, 'seed' | 'totalSteps'> {
  /** Environments that are played side by side. */
  readonly environments: number;
  /** Actions that each environment plays between two updates. */
  readonly rolloutSteps: number;
  /** Units of the hidden layers of actor and critic. */
  readonly hidden: readonly number[];
}

/** What to learn, and on what. */
export interface PpoTraining {
  /** `SERVE_PPO`, say. */
  readonly recipe: PpoRecipe;
  /** Module that exports `createEnvironment(settings): LearningEnvironment`; imported by every thread. */
  readonly module: URL;
  /** Passed to `createEnvironment`; must survive structured cloning. */
  readonly settings: unknown;
  readonly traces: TraceSchedule['traces'];
  /** Actions to learn from, over all environments; rounded up to whole rollouts. */
  readonly steps: number;
  /** Seed of weights, exploration and traces. */
  readonly seed: number;
  /** Threads that play; the result does not depend on it. */
  readonly threads: number;
  readonly start?: PpoStart;
  /** Ends the training after the update at hand; what has been learned is kept. */
  readonly signal?: AbortSignal;
  /** Called after each update. `checkpoint` copies where the run is. */
  readonly onUpdate?: (update: PpoUpdate, checkpoint: () => PpoCheckpoint) => void;
}

/** What came of a training. */
export interface PpoTrained {
  readonly weights: ActorWeights;
  /** Actions learned from. */
  readonly steps: number;
  /** Where the run ended. */
  readonly checkpoint: PpoCheckpoint;
}

/** Trains a network with PPO on several threads. */
export async function trainPpo(training: PpoTraining, kernels: Kernels = simdKernels()): Promise<PpoTrained> {
  const { recipe, module, settings, traces, steps, seed, threads, start = {}, signal, onUpdate } = training;
  const { environments, rolloutSteps, hidden, ...options } = recipe;
  const { checkpoint } = start;
  const source = await RolloutThreads.start({
    ...{ environments, steps: rolloutSteps, threads, module, settings },
    plan: {
      ...{ seed, hidden, schedule: { seed, groupSize: recipe.groupSize, traces } },
      ...(checkpoint && { resume: resumePoint(checkpoint) }),
    },
  });
  try {
    const ppo = new Ppo(source, kernels, { ...options, seed, totalSteps: steps }, start);
    while (!ppo.finished && !signal?.aborted) {
      const update = ppo.update();
      onUpdate?.(update, () => ppo.checkpoint());
      // Rollouts block the thread: let progress be shown and signals be heard between them.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { weights: ppo.actorWeights(), steps: ppo.steps, checkpoint: ppo.checkpoint() };
  } finally {
    await source.close();
  }
}
