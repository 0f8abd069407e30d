import {
  calibrateTask,
  GYM_TASKS,
  type GymTaskId,
  GymWorld,
  inferencegym,
  SEED_SPLITS,
  type TableRows,
  TraceTable,
} from '@servegym/environments';
import type { LearningTask } from '../../learning/learning-task.ts';
import { PPO_DEFAULTS } from '../../learning/ppo.ts';
import type { PpoRecipe } from '../../learning/train-ppo.ts';
import { encodeGymActor, gymActorMetadata } from '../policies/gym-actor.ts';
import type { GymLearningSettings } from './gym-learning-environment.ts';

/** How PPO learns `inferencegym`, where it differs from `PPO_DEFAULTS`. */
export const GYM_PPO = {
  ...PPO_DEFAULTS,
  environments: 16,
  rolloutSteps: 32,
  hidden: [64, 64],
  // A configuration that runs out of memory, or changes the weights, costs five steps: hold one for long enough to see.
  keepBonus: [4, 1],
  gamma: 0.95,
  entropyCoef: [0.01, 0],
} as const satisfies PpoRecipe;

/** A table of one's own to learn on. */
export interface OwnTable {
  readonly rows: TableRows;
  /** Tells it from others. */
  readonly hash: string;
}

/** A task of `inferencegym`, on its training split, by the table that comes with the package or by one's own. */
export function gymLearningTask(taskId: GymTaskId, table?: OwnTable): LearningTask {
  const metadata = gymActorMetadata(taskId, table?.hash);
  const settings: GymLearningSettings = { taskId, own: table === undefined ? null : ownTable(taskId, table) };
  return {
    environment: inferencegym,
    taskId,
    recipe: GYM_PPO,
    module: new URL('gym-learning-environment.ts', import.meta.url),
    settings,
    traces: SEED_SPLITS.train,
    metadata,
    encodeActor: (weights, training) => encodeGymActor(weights, metadata, training),
  };
}

function ownTable(taskId: GymTaskId, { rows }: OwnTable): GymLearningSettings['own'] {
  const { times } = new GymWorld(new TraceTable(rows));
  return { rows, calibration: calibrateTask(times, GYM_TASKS[taskId]) };
}
