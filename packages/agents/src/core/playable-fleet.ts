import {
  type FleetAction,
  type FleetObservation,
  type FleetScenario,
  type FleetWindowReport,
  fleet,
} from '@servegym/environments';
import type { PlayableEnvironment, ServiceMeter } from './playable-environment.ts';

/** `fleet` as policies play it, on a trace, under a shift, and so on. */
export function playableFleet(
  scenario: FleetScenario = {},
): PlayableEnvironment<FleetAction, FleetObservation> {
  const { create, grade, ...described } = fleet.definition();
  return {
    ...described,
    create() {
      const instance = create();
      return {
        reset: (options) => instance.reset({ ...scenario, ...options }),
        step: (action) => instance.step(action),
      };
    },
    grade: ({ reset, actions }) => grade!({ reset: { ...scenario, ...reset }, actions }),
    initialAction: (taskId) => fleet.choose({ task_id: taskId }).defaultAction,
    meter: fleetMeter,
  };
}

function fleetMeter(): ServiceMeter<FleetObservation> {
  let windows = 0;
  let compliant = 0;
  let tokens = 0;
  let usd = 0;
  let preemptions = 0;
  return {
    see({ observation, metadata }) {
      const { slo_cost, reward_components, window_s } = metadata as unknown as FleetWindowReport;
      windows++;
      compliant += 1 - slo_cost;
      tokens += observation.generation_tokens_per_second * window_s;
      usd += reward_components.gpu_usd;
      preemptions += observation.num_preemptions;
    },
    figures: () => ({
      sloCompliance: compliant / windows,
      costPer1k: tokens > 0 ? (usd / tokens) * 1000 : usd,
      preemptions,
    }),
  };
}
