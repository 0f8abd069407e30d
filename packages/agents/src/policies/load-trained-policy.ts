import type { TaskId } from '@servegym/environments';
import { decodeServeActor } from '../llmserve/serve-actor.ts';
import { decodeServeConstant } from '../llmserve/serve-constant.ts';
import type { ServePolicy } from './catalogue.ts';
import { PpoPolicy } from './ppo-policy.ts';
import { StaticPolicy } from './static-policy.ts';

/** A policy that was trained, and the task it was trained for. */
export interface TrainedPolicy {
  readonly taskId: TaskId;
  readonly policy: ServePolicy;
}

/**
 * The policy of a file that training wrote: a network in safetensors or a configuration in JSON.
 * @throws TensorFileError when a network cannot be read
 * @throws TrainedPolicyError when the policy was trained on something else than this version of `llmserve`
 */
export function loadTrainedPolicy(file: Uint8Array): TrainedPolicy {
  if (file[0] === '{'.charCodeAt(0)) {
    const constant = decodeServeConstant(new TextDecoder().decode(file));
    return { taskId: constant.taskId, policy: new StaticPolicy(constant) };
  }
  const actor = decodeServeActor(file);
  return { taskId: actor.taskId, policy: new PpoPolicy(actor) };
}
