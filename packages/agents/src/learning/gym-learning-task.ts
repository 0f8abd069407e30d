import { createHash } from 'node:crypto';
import {
  GymEpisode,
  type GymTaskId,
  GymWorld,
  inferencegym,
  readTableRows,
  SEED_SPLITS,
  type TableRows,
  type TaskCalibration,
  TraceTable,
} from '@servegym/environments';
import { AgentError, requireSame } from '../error-catalogue.ts';
import { FeatureEncoder } from './feature-encoder.ts';
import {
  EpisodeEnvironment,
  type LearningEnvironment,
  type LearningTask,
} from './learning-environment.ts';
import { PPO_DEFAULTS, type PpoRecipe } from './ppo.ts';
import { type ActorWeights, decodeActor, encodeActor } from './trained-actor.ts';
import { GymActionCodec } from './gym-encoding.ts';

/** Recipe of PPO for `inferencegym`. */
const GYM_PPO = {
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
    module: new URL(import.meta.url),
    settings,
    traces: SEED_SPLITS.train,
    metadata,
    encodeActor: (weights, training) =>
      encodeActor(weights, { ...metadata, training: JSON.stringify(training) }),
  };
}

function ownTable(taskId: GymTaskId, { rows }: OwnTable): GymLearningSettings['own'] {
  const { times } = new GymWorld(new TraceTable(rows));
  return { rows, calibration: inferencegym.calibrate(times, inferencegym.tasks.shipped[taskId]) };
}

/** A network that has been trained on a task of `inferencegym`. */
export interface GymActor {
  readonly taskId: GymTaskId;
  readonly weights: ActorWeights;
}

/** Metadata of a network's file. `table` is the hash of the user's own table. */
function gymActorMetadata(taskId: GymTaskId, table?: string): Record<string, string> {
  return {
    environment: inferencegym.id,
    version: inferencegym.version,
    task: String(taskId),
    action_bins: JSON.stringify(inferencegym.bins),
    ...(table !== undefined && { table }),
  };
}

/**
 * Reads a network's file.
 * @throws AgentError `TENSOR_FILE` when the file is not an actor's, `POLICY_MISMATCH` or `POLICY_TASK` when the actor was trained on something else than this version of `inferencegym`
 */
export function decodeGymActor(file: Uint8Array): GymActor {
  const { weights, metadata } = decodeActor(file);
  requireSame('environment', inferencegym.id, metadata.environment);
  requireSame('version of inferencegym', inferencegym.version, metadata.version);
  requireSame('action bins', JSON.stringify(inferencegym.bins), metadata.action_bins);
  const taskId = inferencegym.tasks.shippedIds.find((id) => String(id) === metadata.task);
  if (taskId === undefined) {
    const expected = `one of the tasks ${inferencegym.tasks.shippedIds.join(', ')}`;
    throw new AgentError('POLICY_TASK', { expected, got: metadata.task });
  }
  requireSame(
    'observation size',
    String(inferencegym.features.length),
    String(weights.shape.observationSize),
  );
  requireSame('head sizes', new GymActionCodec(taskId).headSizes.join(), weights.shape.headSizes.join());
  return { taskId, weights };
}

/** Settings of a thread's environments. */
export interface GymLearningSettings {
  readonly taskId: GymTaskId;
  /** A table of one's own with the task's calibration; `null`: the table that comes with the package. */
  readonly own: { readonly rows: TableRows; readonly calibration: TaskCalibration } | null;
}

/** A task of `inferencegym` as a learner plays it. */
export function gymLearningEnvironment(taskId: GymTaskId, world: GymWorld): LearningEnvironment {
  const encoder = new FeatureEncoder(inferencegym.features);
  return new EpisodeEnvironment({
    observationSize: encoder.size,
    codec: new GymActionCodec(taskId),
    initialAction: inferencegym.defaultAction,
    start(seed) {
      encoder.reset();
      return new GymEpisode(inferencegym.tasks.shipped[taskId], seed, world);
    },
    observe(episode, inForce, observation) {
      encoder.encode(episode.observation(), inForce, observation);
    },
  });
}

/** For threads. */
export async function createEnvironment({ taskId, own }: GymLearningSettings): Promise<LearningEnvironment> {
  const world =
    own === null
      ? await inferencegym.shippedWorld()
      : new GymWorld(new TraceTable(own.rows), { [taskId]: own.calibration });
  return gymLearningEnvironment(taskId, world);
}
