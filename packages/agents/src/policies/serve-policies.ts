import { holdMaskedKnobs, llmserve, type ServeAction, type ServeObservation } from '@servegym/environments';
import { EnvironmentError } from '@servegym/openenv/definition';
import type { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../core/policy.ts';
import { decodePolicy, jsonPolicy, SERVE_LEARNER } from '../learning/learners.ts';
import { knownTask, requireTask } from '../learning/trained-for.ts';
import { BanditPolicy } from './bandit-policy.ts';
import { catalogue, constantPolicy, createFrom, randomPolicy } from './catalogue.ts';
import { HeuristicPolicy } from './heuristic-policy.ts';
import { MpcPolicy, OraclePolicy } from './planner-policies.ts';
import policies from './policies.json' with { type: 'json' };
import { regimePolicy, regimesSchema } from './regime-policy.ts';
import { rulePolicy } from './rule-policy.ts';
import {
  isShipped,
  SHIPPED_FORMATS,
  type ShippedName,
  shippedPolicy,
  whyNotShipped,
} from './shipped-policy.ts';

/** A policy for the `llmserve` environment. */
export type ServePolicy = Policy<ServeAction, ServeObservation>;

/** The policies of `llmserve`. */
export const SERVE_POLICIES = catalogue<ServeAction, ServeObservation>(policies.llmserve, {
  random: () => randomPolicy(drawAction),
  default: () => constantPolicy('default', ({ taskId }) => knownTask(llmserve, taskId).defaultAction),
  heuristic: () => new HeuristicPolicy(),
  'static-tuned': () => constantPolicy('static-tuned', bestConstant),
  rule: () => rulePolicy(),
  bandit: () => new BanditPolicy(),
  mpc: () => new MpcPolicy(),
  'mpc-unshifted': () => new MpcPolicy(undefined, 'mpc-unshifted'),
  'mpc-online': () => new MpcPolicy(undefined, 'mpc-online'),
  oracle: () => new OraclePolicy(),
  ...shippedPolicies(),
});

/** Policies that were trained beforehand; none when they were trained on another version of the environment. */
function shippedPolicies(): Record<string, () => ServePolicy> {
  const names = (Object.keys(SHIPPED_FORMATS) as ShippedName[]).filter(isShipped);
  return Object.fromEntries(names.map((name) => [name, () => shippedPolicy(name, loadServePolicy)]));
}

/** The configuration that earned most on the training traffic of the task; its default where none is recorded. */
function bestConstant({ taskId, resetOptions }: PolicyEpisode): ServeAction {
  return llmserve.anchors.configurations(llmserve.choose({ ...resetOptions, task_id: taskId }))[0]!;
}

/** Every active knob uniformly from its range. */
function drawAction(random: RandomStream, { taskId }: PolicyEpisode): ServeAction {
  const tiers = llmserve.bins.quantization_tier;
  return holdMaskedKnobs(knownTask(llmserve, taskId), {
    batch_cap: random.integer(1, 512),
    kv_budget_fraction: 0.1 + 0.9 * random.uniform(),
    speculation_depth: random.integer(0, 8),
    quantization_tier: tiers[random.integer(0, tiers.length - 1)],
    prefill_decode_split: random.integer(0, 1) === 1,
    priority_routing: random.integer(0, 1) === 1,
  });
}

/** A fresh policy. @throws EnvironmentError `UNKNOWN_POLICY`, or `POLICY_NOT_SHIPPED` for one that must be trained first */
export function createServePolicy(name: string): ServePolicy {
  const problem = whyNotShipped(name);
  if (problem !== undefined) throw new EnvironmentError('POLICY_NOT_SHIPPED', problem);
  return createFrom(SERVE_POLICIES, name);
}

/** Keeps the configuration that was tuned for a task. It refuses other tasks. */
export function tunedConstant(taskId: string, action: ServeAction): ServePolicy {
  return constantPolicy('static-tuned', (episode) => {
    requireTask(taskId, episode.taskId);
    return holdMaskedKnobs(knownTask(llmserve, taskId), action);
  });
}

const KINDS = [
  jsonPolicy('action', 'an action', llmserve.actionSchema, tunedConstant),
  jsonPolicy(
    'regimes',
    'at least one regime, each with a center and an action',
    regimesSchema,
    (taskId, regimes) => regimePolicy(taskId, regimes),
  ),
];

/** The policy of a file that training wrote, and its task; see `decodePolicy`. */
export function loadServePolicy(file: Uint8Array): { readonly taskId: string; readonly policy: ServePolicy } {
  return decodePolicy(SERVE_LEARNER, file, KINDS);
}
