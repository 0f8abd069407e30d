import { readRegimeTable } from '../learn/regime-table.ts';
import { decodeServeActor } from '../learn/serve-actor.ts';
import { readServeConstant } from '../learn/serve-constant.ts';
import { TrainedPolicyError } from '../learn/trained-policy-error.ts';
import type { ServePolicy } from './catalogue.ts';
import { StaticPolicy } from './constant-policies.ts';
import { PpoPolicy } from './ppo-policy.ts';
import { RegimePolicy } from './regime-policy.ts';

/** A policy that was trained, and the task it was trained for. */
export interface TrainedPolicy {
  readonly taskId: string;
  readonly policy: ServePolicy;
}

/**
 * The policy of a file that training wrote: a network in safetensors; in JSON one configuration, or one for each regime.
 * @throws TensorFileError when a network cannot be read
 * @throws TrainedPolicyError when the policy was trained on something else than this version of `llmserve`
 */
export function loadTrainedPolicy(file: Uint8Array): TrainedPolicy {
  if (file[0] !== '{'.charCodeAt(0)) {
    const actor = decodeServeActor(file);
    return { taskId: actor.taskId, policy: new PpoPolicy(actor) };
  }
  const json = parse(file);
  if ('regimes' in json) {
    const table = readRegimeTable(json);
    return { taskId: table.taskId, policy: new RegimePolicy(table) };
  }
  const constant = readServeConstant(json);
  return { taskId: constant.taskId, policy: new StaticPolicy(constant) };
}

function parse(file: Uint8Array): Record<string, unknown> {
  try {
    return { ...(JSON.parse(new TextDecoder().decode(file)) as object) };
  } catch {
    throw new TrainedPolicyError('Expected a policy in JSON');
  }
}
