import type { PpoTraining } from './ppo.ts';
import type { ActorWeights } from './trained-actor.ts';

/** Something that networks can be trained on: what to play, how to learn it and how to keep what was learned. */
export interface LearningTask extends Pick<PpoTraining, 'recipe' | 'module' | 'settings' | 'traces'> {
  readonly environment: { readonly id: string; readonly version: string };
  readonly taskId: string | number;
  /** What a file with a network, or with a part of its training, says of where it belongs. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The file that the network is loaded from. `training` is for people. */
  encodeActor(weights: ActorWeights, training: TrainingNote): Uint8Array;
}

/** How a policy came to be, for people: algorithm, steps, seed. */
export type TrainingNote = Readonly<Record<string, string | number>>;
