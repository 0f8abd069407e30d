import { llmserve } from '@servegym/environments';
import { type ActorWeights, decodeActor, encodeActor } from '../../learning/trained-actor.ts';
import { knownTask } from '../known-task.ts';
import { findTrainedTask, trainedTask } from '../trained-task.ts';
import { ServeActionCodec } from './serve-action-codec.ts';
import { ServeObservationEncoder } from './serve-observation-encoder.ts';
import { requireSame, requireThisEnvironment } from './trained-policy-error.ts';

/** A network that has been trained on a task of `llmserve`. */
export interface ServeActor {
  readonly taskId: string;
  readonly weights: ActorWeights;
  /** How it came to be, for people: algorithm, steps, seed. */
  readonly training: Readonly<Record<string, string | number>>;
}

/** A safetensors file that says which environment, version and task the weights are for. */
export function encodeServeActor({ taskId, weights, training }: ServeActor): Uint8Array {
  return encodeActor(weights, { ...serveActorMetadata(taskId), training: JSON.stringify(training) });
}

/** What a network must have been trained on to be of use here. */
export function serveActorMetadata(taskId: string): Record<string, string> {
  return {
    environment: llmserve.id,
    version: llmserve.version,
    ...trainedTask(taskId),
    action_bins: JSON.stringify(new ServeActionCodec(knownTask(taskId)).bins),
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
  const task = findTrainedTask({ task: metadata.task, task_digest: metadata.task_digest });
  const { bins, headSizes } = new ServeActionCodec(task);
  requireSame('action bins', JSON.stringify(bins), metadata.action_bins);
  requireSame(
    'observation size',
    String(ServeObservationEncoder.size),
    String(weights.shape.observationSize),
  );
  requireSame('head sizes', headSizes.join(), weights.shape.headSizes.join());
  return { taskId: task.id, weights, training: JSON.parse(metadata.training ?? '{}') };
}
