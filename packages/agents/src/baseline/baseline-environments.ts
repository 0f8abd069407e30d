import {
  type BenchmarkAction,
  benchmarkEnvironment,
  GYM_DEFAULT_ACTION,
  inferencegym,
  SERVE_TASKS,
  serveEnvironment,
  type TaskId,
} from '@servegym/environments';
import type { LlmEnvironment } from '../core/llm/llm-policy.ts';
import type { PlayedStep } from '../core/play-episode.ts';
import type { Policy } from '../core/policy.ts';
import { createGymPolicy, listGymPolicies } from '../inferencegym/policies/gym-policies.ts';
import { createPolicy, listPolicies, type PolicyDescription } from '../llmserve/policies/catalogue.ts';

/** Actions and observations are as the schemas of the environment have them. */
export type BaselineAction = Record<string, unknown>;

/** Options of the reset that begins an episode. */
export type BaselineReset = Readonly<{ task_id?: string | number; seed: number }>;

export interface BaselineGrade {
  readonly score: number;
  readonly feedback: string;
  readonly breakdown: Readonly<Record<string, unknown>>;
}

/** Definition of an environment, as `@servegym/openenv` has it, as far as baselines use it. */
export interface BaselineDefinition extends LlmEnvironment<BaselineAction, object> {
  readonly id: string;
  readonly version: string;
  create(): {
    reset(options: BaselineReset): PlayedStep<object> | Promise<PlayedStep<object>>;
    step(action: BaselineAction): PlayedStep<object> | Promise<PlayedStep<object>>;
    close?(): void | Promise<void>;
  };
  grade?(record: {
    readonly reset: BaselineReset;
    readonly actions: readonly BaselineAction[];
  }): BaselineGrade | Promise<BaselineGrade>;
}

/** An environment with baselines. */
export interface BaselineEnvironment {
  readonly definition: BaselineDefinition;
  /** The agent of the deterministic baseline. */
  readonly agent: string;
  listPolicies(): readonly PolicyDescription[];
  createPolicy(name: string): Policy<BaselineAction, object>;
  /** The action in force right after a reset. */
  initialAction(taskId: string | number): BaselineAction;
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
