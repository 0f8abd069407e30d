import {
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeScenario,
} from '@servegym/environments';
import type { PlayableEnvironment, ServiceMeter } from './playable-environment.ts';
import type { Policy } from './policy.ts';
import { knownTask } from '../learning/known-task.ts';

/** `llmserve` as policies play it, with the traffic, trace and shift of `scenario` in every reset. */
export function playableServe(
  scenario: ServeScenario = {},
): PlayableEnvironment<ServeAction, ServeObservation> {
  const definition = llmserve.definition();
  return {
    ...definition,
    create() {
      const instance = definition.create();
      return {
        reset: (options) => instance.reset({ ...scenario, ...options }),
        step: (action) => instance.step(action),
        close: () => instance.close?.(),
      };
    },
    grade: ({ reset, actions }) => definition.grade!({ reset: { ...scenario, ...reset }, actions }),
    initialAction: (taskId) => knownTask(taskId).defaultAction,
    meter: serveMeter,
  };
}

/** Reads the figures of an episode of a task. */
function serveMeter(taskId: string | number): ServiceMeter<ServeObservation> {
  const windowSeconds = llmserve.tasks.find(String(taskId))?.windowSeconds ?? 0;
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
