import { findServeTask, llmserve, type ServeAction, type ServeObservation } from '@servegym/environments';
import type { EvaluatedEnvironment, ServiceMeter } from '../core/evaluation/evaluate-policy.ts';
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
