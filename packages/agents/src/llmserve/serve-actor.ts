import { llmserve, TASK_IDS, type TaskId } from '@servegym/environments';
import { type ActorWeights, decodeActor, encodeActor } from '../learning/trained-actor.ts';
import { SERVE_ACTION_BINS, SERVE_HEAD_SIZES } from './serve-action-codec.ts';
import { ServeObservationEncoder } from './serve-observation-encoder.ts';
import { requireSame, requireThisEnvironment, TrainedPolicyError } from './trained-policy-error.ts';

/** A network that has been trained on a task of `llmserve`. */
export interface ServeActor {
  readonly taskId: TaskId;
  readonly weights: ActorWeights;
  /** How it came to be, for people: algorithm, steps, seed. */
  readonly training: Readonly<Record<string, string | number>>;
}

/** A safetensors file that says which environment, version and task the weights are for. */
export function encodeServeActor({ taskId, weights, training }: ServeActor): Uint8Array {
  return encodeActor(weights, { ...serveActorMetadata(taskId), training: JSON.stringify(training) });
}

/** What a network must have been trained on to be of use here. */
export function serveActorMetadata(taskId: TaskId): Record<string, string> {
  return {
    environment: llmserve.id,
    version: llmserve.version,
    task: taskId,
    action_bins: JSON.stringify(SERVE_ACTION_BINS),
  };
}

/**
 * Reads what `encodeServeActor` wrote.
 * @throws TensorFileError when the file is not an actor's
 * @throws TrainedPolicyError when the actor was trained on something else than this version of `llmserve`
 */
export function decodeServeActor(file: Uint8Array): ServeActor {
  const { weights, metadata } = decodeActor(file);
  requireThisEnvironment(metadata.environment, metadata.version);
  requireSame('action bins', JSON.stringify(SERVE_ACTION_BINS), metadata.action_bins);
  requireSame(
    'observation size',
    String(ServeObservationEncoder.size),
    String(weights.shape.observationSize),
  );
  requireSame('head sizes', SERVE_HEAD_SIZES.join(), weights.shape.headSizes.join());
  const taskId = TASK_IDS.find((id) => id === metadata.task);
  if (taskId === undefined) {
    throw new TrainedPolicyError(`Expected a policy for one of ${TASK_IDS.join(', ')}, got ${metadata.task}`);
  }
  return { taskId, weights, training: JSON.parse(metadata.training ?? '{}') };
}
