import {
  findServeTask,
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeScenario,
} from '@servegym/environments';
import type { EvaluatedEnvironment, ServiceMeter } from '../core/evaluation/evaluate-policy.ts';
import type { Policy } from '../core/policy.ts';
import { knownTask } from './known-task.ts';

/** `llmserve` as evaluations take it. */
export const evaluatedServe: EvaluatedEnvironment<ServeAction, ServeObservation> = {
  create: () => llmserve.create(),
  grade: (record) => llmserve.grade!(record),
  initialAction: (taskId) => knownTask(taskId).defaultAction,
  meter: serveMeter,
};

/** Reads the figures of an episode of a task. */
export function serveMeter(taskId: string | number): ServiceMeter<ServeObservation> {
  const windowSeconds = findServeTask(String(taskId))?.windowSeconds ?? 0;
  let windows = 0;
  let slo = 0;
  let tokens = 0;
  let cost = 0;
  let preemptions = 0;
  return {
    see({ observation }) {
      windows++;
      slo += observation.slo_compliance_rate;
      const emitted = observation.throughput_tps * windowSeconds;
      tokens += emitted;
      // A window that emits nothing reports what the window itself costs.
      cost += observation.estimated_cost_per_1k * (emitted > 0 ? emitted / 1000 : 1);
      preemptions += observation.eviction_events;
    },
    figures: () => ({
      sloCompliance: slo / windows,
      costPer1k: tokens > 0 ? (cost / tokens) * 1000 : cost,
      preemptions,
    }),
  };
}

/** What there is to change of an environment so that it is played under a scenario. */
interface Played {
  create(): {
    reset(options: { readonly task_id: string | number; readonly seed: number }): unknown;
    step(action: never): unknown;
    close?(): unknown;
  };
  grade?(record: {
    readonly reset: { readonly task_id: string; readonly seed: number };
    readonly actions: readonly never[];
  }): unknown;
}

/** The same environment, whose episodes are all reset with the traffic, trace and shift of `scenario`. */
export function underScenario<E extends Played>(environment: E, scenario: ServeScenario): E {
  const grade = environment.grade?.bind(environment);
  return {
    ...environment,
    create() {
      const instance = environment.create();
      return {
        reset: (options: Parameters<typeof instance.reset>[0]) => instance.reset({ ...scenario, ...options }),
        step: (action: never) => instance.step(action),
        close: () => instance.close?.(),
      };
    },
    ...(grade && {
      grade: (record: Parameters<typeof grade>[0]) =>
        grade({ ...record, reset: { ...scenario, ...record.reset } }),
    }),
  };
}

/** The same policy, told of the scenario: only one that plans on the true traffic makes use of it. */
export function policyUnderScenario<Action, Observation>(
  policy: Policy<Action, Observation>,
  scenario: ServeScenario,
): Policy<Action, Observation> {
  return {
    name: policy.name,
    reset: (episode) => policy.reset({ ...episode, resetOptions: scenario }),
    act: (step) => policy.act(step),
  };
}
