import { type FleetAction, FleetEpisode, type FleetTaskId, fleet, SEED_SPLITS } from '@servegym/environments';
import { AgentError, requireSame } from '../error-catalogue.ts';
import { ActionCodec } from './action-codec.ts';
import { FeatureEncoder } from './feature-encoder.ts';
import {
  EpisodeEnvironment,
  type LearningEnvironment,
  type LearningTask,
} from './learning-environment.ts';
import { PPO_DEFAULTS, type PpoRecipe } from './ppo.ts';
import { type ActorWeights, decodeActor, encodeActor } from './trained-actor.ts';

/** Recipe of PPO for `fleet`. */
const FLEET_PPO = {
  ...PPO_DEFAULTS,
  environments: 16,
  rolloutSteps: 60,
  hidden: [64, 64],
  // A number of replicas that changes at random pays for cold starts all the time, and learns nothing but that.
  keepBonus: [4, 1],
  gamma: 0.95,
  entropyCoef: [0.003, 0],
} as const satisfies PpoRecipe;

/** Windows of an episode in training: an hour. */
const WINDOWS = 120;

const BY_RATIO = fleet.knobs.filter((knob) => fleet.actionSchema.shape[knob].meta()?.bins_by === 'ratio');

/** A head for each knob that decides something in a task. */
export class FleetActionCodec extends ActionCodec<FleetAction> {
  constructor(taskId: FleetTaskId) {
    const { defaultAction } = fleet.tasks.shipped[taskId];
    const idle = fleet.idleKnobs(fleet.tasks.shipped[taskId]);
    const free = fleet.knobs.filter((knob) => !idle.includes(knob));
    super(fleet.bins, free, defaultAction, BY_RATIO);
  }
}

/** A task of `fleet`, on hours of its training split. */
export function fleetLearningTask(taskId: FleetTaskId): LearningTask {
  const environment = fleet.definition();
  const metadata = {
    environment: environment.id,
    version: environment.version,
    task: taskId,
    action_bins: JSON.stringify(new FleetActionCodec(taskId).bins),
  };
  return {
    environment,
    taskId,
    recipe: FLEET_PPO,
    module: new URL(import.meta.url),
    settings: taskId,
    traces: SEED_SPLITS.train,
    metadata,
    encodeActor: (weights, training) =>
      encodeActor(weights, { ...metadata, training: JSON.stringify(training) }),
  };
}

/**
 * Reads a network's file.
 * @throws AgentError `TENSOR_FILE` when the file is not an actor's, `POLICY_MISMATCH` or `POLICY_TASK` when the actor was
 *   trained on something else than this version of `fleet`
 */
export function decodeFleetActor(file: Uint8Array): { taskId: FleetTaskId; weights: ActorWeights } {
  const { weights, metadata } = decodeActor(file);
  const taskId = trainedFleetTask(metadata);
  const { bins, headSizes } = new FleetActionCodec(taskId);
  requireSame('action bins', JSON.stringify(bins), metadata.action_bins);
  requireSame('observation size', String(fleet.features.length), String(weights.shape.observationSize));
  requireSame('head sizes', headSizes.join(), weights.shape.headSizes.join());
  return { taskId, weights };
}

/** The task that the file of a policy names. @throws AgentError `POLICY_MISMATCH` or `POLICY_TASK` */
export function trainedFleetTask(trained: Readonly<Record<string, unknown>>): FleetTaskId {
  const { id, version } = fleet.definition();
  requireSame('environment', id, trained.environment);
  requireSame('version of fleet', version, trained.version);
  const taskId = fleet.tasks.shippedIds.find((known) => known === trained.task);
  if (taskId !== undefined) return taskId;
  const expected = `one of ${fleet.tasks.shippedIds.join(', ')}`;
  throw new AgentError('POLICY_TASK', { expected, got: `one for ${trained.task}` });
}

/** A task of `fleet` as a learner plays it. */
export function fleetLearningEnvironment(taskId: FleetTaskId): LearningEnvironment {
  const task = { ...fleet.tasks.shipped[taskId], windows: WINDOWS };
  const encoder = new FeatureEncoder(fleet.features);
  return new EpisodeEnvironment({
    observationSize: encoder.size,
    codec: new FleetActionCodec(taskId),
    initialAction: task.defaultAction,
    start(seed) {
      encoder.reset();
      return new FleetEpisode(task, seed);
    },
    observe(episode, inForce, observation) {
      encoder.encode(episode.observation(), inForce, observation);
    },
  });
}

/** For threads. */
export const createEnvironment = fleetLearningEnvironment;
