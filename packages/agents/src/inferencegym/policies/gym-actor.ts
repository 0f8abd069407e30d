import { GYM_TASK_IDS, type GymTaskId, inferencegym } from '@servegym/environments';
import { type ActorWeights, decodeActor, encodeActor } from '../../learning/trained-actor.ts';
import { requireSame, TrainedPolicyError } from '../../llmserve/learn/trained-policy-error.ts';
import { GYM_ACTION_BINS, GymActionCodec } from '../learn/gym-action-codec.ts';
import { GYM_OBSERVATION_SIZE } from '../learn/gym-observation-encoder.ts';

/** A network that has been trained on a task of `inferencegym`. */
export interface GymActor {
  readonly taskId: GymTaskId;
  readonly weights: ActorWeights;
}

/** What a file with a network says of where it belongs. A table of one's own is told by `table`, a hash. */
export function gymActorMetadata(taskId: GymTaskId, table?: string): Record<string, string> {
  return {
    environment: inferencegym.id,
    version: inferencegym.version,
    task: String(taskId),
    action_bins: JSON.stringify(GYM_ACTION_BINS),
    ...(table !== undefined && { table }),
  };
}

/** A safetensors file that says which environment, version and task the weights are for. */
export function encodeGymActor(
  weights: ActorWeights,
  metadata: Readonly<Record<string, string>>,
  training: Readonly<Record<string, string | number>>,
): Uint8Array {
  return encodeActor(weights, { ...metadata, training: JSON.stringify(training) });
}

/**
 * Reads what `encodeGymActor` wrote.
 * @throws TensorFileError when the file is not an actor's
 * @throws TrainedPolicyError when the actor was trained on something else than this version of `inferencegym`
 */
export function decodeGymActor(file: Uint8Array): GymActor {
  const { weights, metadata } = decodeActor(file);
  requireSame('environment', inferencegym.id, metadata.environment);
  requireSame('version of inferencegym', inferencegym.version, metadata.version);
  requireSame('action bins', JSON.stringify(GYM_ACTION_BINS), metadata.action_bins);
  const taskId = GYM_TASK_IDS.find((id) => String(id) === metadata.task);
  if (taskId === undefined) {
    throw new TrainedPolicyError(
      `Expected a policy for one of the tasks ${GYM_TASK_IDS.join(', ')}, got ${metadata.task}`,
    );
  }
  requireSame('observation size', String(GYM_OBSERVATION_SIZE), String(weights.shape.observationSize));
  requireSame('head sizes', new GymActionCodec(taskId).headSizes.join(), weights.shape.headSizes.join());
  return { taskId, weights };
}
