import { type GymAction, type GymObservation, type GymTaskId, inferencegym } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../core/policy.ts';
import { AgentError } from '../error-catalogue.ts';
import { NetworkPolicy } from '../learning/network-policy.ts';
import type { PolicyDescription } from './serve-policies.ts';
import { GymActionCodec } from '../learning/gym-encoding.ts';
import { decodeGymActor } from '../learning/gym-learning-task.ts';

/** A policy for the `inferencegym` environment. */
export type GymPolicy = Policy<GymAction, GymObservation>;

/** Keeps InferenceGym's default action: the fixed baseline agent. */
class GymBaselinePolicy implements GymPolicy {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
  reset(): void {}
  act(): GymAction {
    return inferencegym.defaultAction;
  }
}

/** Draws every knob uniformly from its values, anew for every step. */
class GymRandomPolicy implements GymPolicy {
  readonly name = 'random';
  #random = new RandomStream(0, 'random policy');

  reset({ seed }: PolicyEpisode): void {
    this.#random = new RandomStream(seed, 'random policy');
  }

  act(): GymAction {
    const random = this.#random;
    return {
      kv_budget: 0.1 + 0.9 * random.uniform(),
      spec_length: inferencegym.bins.spec_length[random.integer(0, inferencegym.bins.spec_length.length - 1)],
      batch_size: random.integer(1, 512),
      prefill_disagg: random.integer(0, 1) === 1,
      quant_tier: random.integer(0, 2) as GymAction['quant_tier'],
    };
  }
}

const CATALOGUE: readonly (PolicyDescription & { readonly create: () => GymPolicy })[] = [
  {
    name: 'random',
    title: 'Random',
    description: 'Draws every knob uniformly from its values, anew for every step.',
    create: () => new GymRandomPolicy(),
  },
  {
    name: 'default',
    title: 'Default configuration',
    description: 'Keeps the default action: batch 32, the whole KV budget, FP16.',
    create: () => new GymBaselinePolicy('default'),
  },
  {
    name: 'baseline',
    title: 'Baseline agent',
    description: 'The fixed baseline agent of InferenceGym, which keeps the default action.',
    create: () => new GymBaselinePolicy('baseline'),
  },
];

/** The policies that `createGymPolicy` knows. */
export function listGymPolicies(): PolicyDescription[] {
  return CATALOGUE.map(({ name, title, description }) => ({ name, title, description }));
}

/** A fresh policy. @throws AgentError `UNKNOWN_POLICY` */
export function createGymPolicy(name: string): GymPolicy {
  const entry = CATALOGUE.find((known) => known.name === name);
  if (entry !== undefined) return entry.create();
  throw new AgentError('UNKNOWN_POLICY', { known: CATALOGUE.map((policy) => policy.name), got: name });
}

/** The policy in a file that training wrote, and its task. @throws AgentError `TENSOR_FILE` or `POLICY_...` */
export function loadGymPolicy(file: Uint8Array): { readonly taskId: GymTaskId; readonly policy: GymPolicy } {
  const { taskId, weights } = decodeGymActor(file);
  const codec = new GymActionCodec(taskId);
  return { taskId, policy: new NetworkPolicy({ taskId, weights, features: inferencegym.features, codec }) };
}
