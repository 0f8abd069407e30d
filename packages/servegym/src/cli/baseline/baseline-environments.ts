import {
  createGymPolicy,
  createPolicy,
  type LlmEnvironment,
  listGymPolicies,
  listPolicies,
  type Policy,
  type PolicyDescription,
} from '@servegym/agents';
import {
  type BenchmarkAction,
  benchmarkEnvironment,
  GYM_DEFAULT_ACTION,
  inferencegym,
  SERVE_TASKS,
  serveEnvironment,
  type TaskId,
} from '@servegym/environments';
import type { EnvironmentDefinition } from '@servegym/openenv';

/** An environment with baselines. Actions and observations are what its schemas say. */
export interface BaselineEnvironment {
  readonly definition: EnvironmentDefinition<Record<string, unknown>, object, object> &
    LlmEnvironment<Record<string, unknown>, object>;
  /** The agent of the deterministic baseline. */
  readonly agent: string;
  listPolicies(): readonly PolicyDescription[];
  createPolicy(name: string): Policy<Record<string, unknown>, object>;
  /** The action in force right after a reset. */
  initialAction(taskId: string | number): Record<string, unknown>;
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
      return {
        definition: serveEnvironment(),
        agent: 'heuristic',
        listPolicies,
        createPolicy,
        initialAction: (taskId: TaskId) => SERVE_TASKS[taskId].defaultAction,
      };
    case 'inferencegym':
      return {
        definition: inferencegym,
        agent: 'baseline',
        listPolicies: listGymPolicies,
        createPolicy: createGymPolicy,
        initialAction: () => GYM_DEFAULT_ACTION,
      };
    case 'benchmark': {
      const definition = benchmarkEnvironment();
      return {
        definition,
        agent: 'default',
        listPolicies: () => [{ name: 'default', title: 'Default', description: 'Never waits.' }],
        createPolicy: (): Policy<BenchmarkAction, object> => ({
          name: 'default',
          reset() {},
          act: () => definition.action.parse({}),
        }),
        initialAction: () => definition.action.parse({}),
      };
    }
  }
}
