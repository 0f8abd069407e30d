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
  /** What `reset` applies. */
  initialAction(taskId: string | number): Record<string, unknown>;
}

export const BASELINE_ENVIRONMENT_IDS = ['llmserve', 'inferencegym'] as const;
export type BaselineEnvironmentId = (typeof BASELINE_ENVIRONMENT_IDS)[number];

export function baselineEnvironment(id: BaselineEnvironmentId): BaselineEnvironment {
  const environment =
    id === 'llmserve'
      ? {
          definition: serveEnvironment(),
          agent: 'heuristic',
          listPolicies,
          createPolicy,
          initialAction: (taskId: string | number) => SERVE_TASKS[taskId as TaskId].defaultAction,
        }
      : {
          definition: inferencegym,
          agent: 'baseline',
          listPolicies: listGymPolicies,
          createPolicy: createGymPolicy,
          initialAction: () => GYM_DEFAULT_ACTION,
        };
  // A policy of an environment meets only this environment's observations.
  return environment as unknown as BaselineEnvironment;
}
