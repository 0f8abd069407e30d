import { type GymAction, type GymObservation, inferencegym, type StepInfo } from '@servegym/environments';
import type { PlayableEnvironment, ServiceMeter } from './playable-environment.ts';

/** `inferencegym`, on whichever table, as policies play it. */
export function playableGym(
  definition: ReturnType<typeof inferencegym.definition>,
): PlayableEnvironment<GymAction, GymObservation> {
  return { ...definition, initialAction: () => inferencegym.defaultAction, meter: gymMeter };
}

function gymMeter(): ServiceMeter<GymObservation> {
  let steps = 0;
  let compliant = 0;
  let tokens = 0;
  let cents = 0;
  let preemptions = 0;
  return {
    see({ observation, metadata }) {
      const { metrics } = metadata as unknown as StepInfo;
      steps++;
      compliant += 1 - observation.slo_violation_rate;
      tokens += metrics.tokens_per_sec;
      cents = observation.cost_so_far;
      preemptions += metrics.eviction_events;
    },
    figures: () => ({
      sloCompliance: compliant / steps,
      costPer1k: tokens > 0 ? (cents / 100 / tokens) * 1000 : cents / 100,
      preemptions,
    }),
  };
}
