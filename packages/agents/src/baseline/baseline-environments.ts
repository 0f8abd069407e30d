import { type BenchmarkAction, benchmarkEnvironment, inferencegym } from '@servegym/environments';
import type { PlayableEnvironment } from '../core/playable-environment.ts';
import type { Policy } from '../core/policy.ts';
import { playableGym } from '../inferencegym/playable-gym.ts';
import { createGymPolicy, listGymPolicies } from '../inferencegym/policies/gym-policies.ts';
import { playableServe } from '../llmserve/playable-serve.ts';
import { createPolicy, listPolicies, type PolicyDescription } from '../llmserve/policies/catalogue.ts';

/** Actions and observations are as the schemas of the environment have them. */
export type BaselineAction = Record<string, unknown>;

/** An environment and the agents of its baselines. */
export interface BaselineEnvironment {
  readonly environment: PlayableEnvironment<BaselineAction, object>;
  /** The agent of the deterministic baseline. */
  readonly agent: string;
  listPolicies(): readonly PolicyDescription[];
  createPolicy(name: string): Policy<BaselineAction, object>;
}

export const BASELINE_ENVIRONMENT_IDS = ['llmserve', 'inferencegym', 'benchmark'] as const;
export type BaselineEnvironmentId = (typeof BASELINE_ENVIRONMENT_IDS)[number];

export function baselineEnvironment(id: BaselineEnvironmentId): BaselineEnvironment {
  // A policy of an environment meets only this environment's observations.
  return parts(id) as unknown as BaselineEnvironment;
}

function parts(id: BaselineEnvironmentId): unknown {
  switch (id) {
    case 'llmserve':
      return { environment: playableServe(), agent: 'heuristic', listPolicies, createPolicy };
    case 'inferencegym':
      return {
        environment: playableGym(inferencegym),
        agent: 'baseline',
        listPolicies: listGymPolicies,
        createPolicy: createGymPolicy,
      };
    case 'benchmark': {
      const definition = benchmarkEnvironment();
      const initialAction = () => definition.action.parse({});
      return {
        environment: { ...definition, initialAction },
        agent: 'default',
        listPolicies: () => [{ name: 'default', title: 'Default', description: 'Never waits.' }],
        createPolicy: (): Policy<BenchmarkAction, object> => ({
          name: 'default',
          reset() {},
          act: initialAction,
        }),
      };
    }
  }
}
