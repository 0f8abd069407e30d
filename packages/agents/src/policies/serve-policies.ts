import { holdMaskedKnobs, llmserve, type ServeAction, type ServeObservation } from '@servegym/environments';
import { EnvironmentError } from '@servegym/openenv/definition';
import type { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../core/policy.ts';
import { decodePolicy, jsonPolicy, SERVE_LEARNER } from '../learning/learners.ts';
import { knownTask, requireTask } from '../learning/trained-for.ts';
import { BanditPolicy } from './bandit-policy.ts';
import { ConstantPolicy, createFrom, type PolicyEntry, RandomPolicy } from './catalogue.ts';
import { HeuristicPolicy } from './heuristic-policy.ts';
import { MpcPolicy, OraclePolicy } from './planner-policies.ts';
import { RegimePolicy, regimesSchema } from './regime-policy.ts';
import { RulePolicy } from './rule-policy.ts';
import { isShipped, type ShippedName, ShippedPolicy, whyNotShipped } from './shipped-policy.ts';

/** A policy for the `llmserve` environment. */
export type ServePolicy = Policy<ServeAction, ServeObservation>;

/** The policies of `llmserve`. */
export const SERVE_POLICIES: readonly PolicyEntry<ServeAction, ServeObservation>[] = [
  {
    name: 'random',
    title: 'Random',
    description: 'Draws every knob uniformly from its range, anew for every window.',
    create: () => new RandomPolicy(drawAction),
  },
  {
    name: 'default',
    title: 'Default configuration',
    description: 'Keeps the configuration that the server starts with.',
    create: () => new ConstantPolicy('default', ({ taskId }) => knownTask(llmserve, taskId).defaultAction),
  },
  {
    name: 'heuristic',
    title: 'Heuristic rules',
    description:
      'Hand-written rules for batching, memory and adaptation to the workload, after Orca, vLLM and Decima.',
    create: () => new HeuristicPolicy(),
  },
  {
    name: 'static-tuned',
    title: 'Best constant',
    description: 'Keeps the configuration that earned most on the training traffic.',
    create: () => new ConstantPolicy('static-tuned', bestConstant),
  },
  {
    name: 'rule',
    title: 'Tuned rule',
    description:
      'Six parameters, tuned on the training traffic: drafts by the arrival rate, KV memory by use, the rest as in the best constant.',
    create: () => new RulePolicy(),
  },
  {
    name: 'bandit',
    title: 'Bandit',
    description:
      'Tries configurations around the best constant one while it serves, and returns to what paid under such a load.',
    create: () => new BanditPolicy(),
  },
  {
    name: 'mpc',
    title: 'Planner',
    description:
      'Tries configurations on a simulated twin before each window, on futures like the traffic seen so far.',
    create: () => new MpcPolicy(),
  },
  {
    name: 'mpc-unshifted',
    title: 'Planner, unshifted model',
    description:
      'The planner with the model of the task as it was: what planning is worth where the server or its traffic has shifted.',
    create: () => new MpcPolicy(undefined, 'mpc-unshifted'),
  },
  {
    name: 'mpc-online',
    title: 'Planner that fits its model',
    description:
      'The planner that starts with the task as it was, and estimates the speed and the memory of the server while it serves.',
    create: () => new MpcPolicy(undefined, 'mpc-online'),
  },
  {
    name: 'oracle',
    title: 'Clairvoyant planner',
    description: 'Plans the whole episode knowing all traffic to come: what others are held against.',
    create: () => new OraclePolicy(),
  },
  ...shipped(
    'cem',
    'Configurations by regime',
    'Keeps a configuration for each regime of traffic; found by search.',
  ),
  ...shipped('ppo', 'PPO', 'A network trained with proximal policy optimization.'),
  ...shipped('distilled', 'Distilled planner', 'A network that learned from the planner, and then with PPO.'),
];

/** Policies that were trained beforehand; none when they were trained on another version of the environment. */
function shipped(name: ShippedName, title: string, description: string) {
  const create = () => new ShippedPolicy(name, loadServePolicy);
  return isShipped(name) ? [{ name, title, description, create }] : [];
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
  return new ConstantPolicy('static-tuned', (episode) => {
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
    (taskId, regimes) => new RegimePolicy(taskId, regimes),
  ),
];

/** The policy of a file that training wrote, and its task; see `decodePolicy`. */
export function loadServePolicy(file: Uint8Array): { readonly taskId: string; readonly policy: ServePolicy } {
  return decodePolicy(SERVE_LEARNER, file, KINDS);
}
