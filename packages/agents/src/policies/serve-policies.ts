import type { ServeAction, ServeObservation } from '@servegym/environments';
import type { Policy } from '../core/policy.ts';
import { AgentError } from '../error-catalogue.ts';
import { BanditPolicy } from './bandit-policy.ts';
import { BestConstantPolicy, DefaultPolicy, RandomPolicy } from './baseline-policies.ts';
import { HeuristicPolicy } from './heuristic-policy.ts';
import { MpcPolicy, OraclePolicy } from './planner-policies.ts';
import { RulePolicy } from './rule-policy.ts';
import { isShipped, type ShippedName, ShippedPolicy, whyNotShipped } from './shipped-policy.ts';

/** A policy for the `llmserve` environment. */
export type ServePolicy = Policy<ServeAction, ServeObservation>;

/** A policy as lists show it. */
export interface PolicyDescription {
  /** Name for `createPolicy`. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
}

const CATALOGUE: readonly (PolicyDescription & { readonly create: () => ServePolicy })[] = [
  {
    name: 'random',
    title: 'Random',
    description: 'Draws every knob uniformly from its range, anew for every window.',
    create: () => new RandomPolicy(),
  },
  {
    name: 'default',
    title: 'Default configuration',
    description: 'Keeps the configuration that the server starts with.',
    create: () => new DefaultPolicy(),
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
    create: () => new BestConstantPolicy(),
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
  return isShipped(name) ? [{ name, title, description, create: () => new ShippedPolicy(name) }] : [];
}

/** Policies that simulate before they act, for much longer than the environment takes. */
const PLANNERS = ['mpc', 'mpc-unshifted', 'mpc-online', 'oracle'];

/** True for policies that take long to choose. */
export function isPlanner(name: string): boolean {
  return PLANNERS.includes(name);
}

/** The policies that `createPolicy` knows. */
export function listPolicies(): PolicyDescription[] {
  return CATALOGUE.map(({ name, title, description }) => ({ name, title, description }));
}

/** A fresh policy. @throws AgentError `UNKNOWN_POLICY`, or `POLICY_NOT_SHIPPED` for one that must be trained first */
export function createPolicy(name: string): ServePolicy {
  const entry = CATALOGUE.find((known) => known.name === name);
  if (entry !== undefined) return entry.create();
  const problem = whyNotShipped(name);
  if (problem !== undefined) throw new AgentError('POLICY_NOT_SHIPPED', { problem });
  throw new AgentError('UNKNOWN_POLICY', { known: CATALOGUE.map((policy) => policy.name), got: name });
}
