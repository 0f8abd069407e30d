import { llmserve, TASK_IDS, type TaskId } from '@servegym/environments';
import { type ActorWeights, decodeActor, encodeActor } from '../learning/trained-actor.ts';
import { SERVE_ACTION_BINS, SERVE_HEAD_SIZES } from './serve-action-codec.ts';
import { ServeObservationEncoder } from './serve-observation-encoder.ts';

/** A network that has been trained on a task of `llmserve`. */
export interface ServeActor {
  readonly taskId: TaskId;
  readonly weights: ActorWeights;
  /** How it came to be, for people: algorithm, steps, seed. */
  readonly training: Readonly<Record<string, string | number>>;
}

/** Weights that do not belong to this version of `llmserve` or of its encoding. The message says which differs. */
export class ServeActorError extends Error {
  override readonly name = 'ServeActorError';
}

/** A safetensors file that says which environment, version and task the weights are for. */
export function encodeServeActor({ taskId, weights, training }: ServeActor): Uint8Array {
  return encodeActor(weights, {
    environment: llmserve.id,
    version: llmserve.version,
    task: taskId,
    action_bins: JSON.stringify(SERVE_ACTION_BINS),
    training: JSON.stringify(training),
  });
}

/**
 * Reads what `encodeServeActor` wrote.
 * @throws TensorFileError when the file is not an actor's
 * @throws ServeActorError when the actor was trained on something else than this version of `llmserve`
 */
export function decodeServeActor(file: Uint8Array): ServeActor {
  const { weights, metadata } = decodeActor(file);
  requireSame('environment', llmserve.id, metadata.environment);
  requireSame('version of llmserve', llmserve.version, metadata.version);
  requireSame('action bins', JSON.stringify(SERVE_ACTION_BINS), metadata.action_bins);
  requireSame(
    'observation size',
    String(ServeObservationEncoder.size),
    String(weights.shape.observationSize),
  );
  requireSame('head sizes', SERVE_HEAD_SIZES.join(), weights.shape.headSizes.join());
  const taskId = TASK_IDS.find((id) => id === metadata.task);
  if (taskId === undefined) {
    throw new ServeActorError(`Expected weights for one of ${TASK_IDS.join(', ')}, got ${metadata.task}`);
  }
  return { taskId, weights, training: JSON.parse(metadata.training ?? '{}') };
}

function requireSame(what: string, expected: string, got: string | undefined): void {
  if (got === expected) return;
  throw new ServeActorError(`Expected weights for the ${what} ${expected}, got ${got}: train them anew`);
}
