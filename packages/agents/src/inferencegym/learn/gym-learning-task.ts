import { createHash } from 'node:crypto';
import {
  calibrateTask,
  GYM_TASKS,
  type GymTaskId,
  GymWorld,
  inferencegym,
  readTableRows,
  SEED_SPLITS,
  type TableRows,
  TraceTable,
} from '@servegym/environments';
import type { LearningTask } from '../../learning/learning-task.ts';
import type { PpoRecipe } from '../../learning/ppo.ts';
import { PPO_DEFAULTS } from '../../learning/ppo.ts';
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
  /** A Parquet file. */
  readonly bytes: Uint8Array;
  readonly rows: TableRows;
  /** SHA-256 of the bytes. */
  readonly hash: string;
}

/** The trace table in the bytes of a Parquet file. @throws TraceTableError when it cannot be played */
export async function decodeGymTable(bytes: Uint8Array): Promise<OwnTable> {
  const rows = await readTableRows(bytes);
  // Says what is wrong with the rows, if anything is.
  new TraceTable(rows);
  return { bytes, rows, hash: createHash('sha256').update(bytes).digest('hex') };
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
