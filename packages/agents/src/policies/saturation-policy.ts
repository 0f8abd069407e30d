import type { FleetAction } from '@servegym/environments';
import type { FleetPolicy, FleetStep } from './fleet-policy.ts';

/** Thresholds of the workload variant autoscaler's saturation mode, its defaults. */
const KV_CACHE_THRESHOLD = 0.8;
const QUEUE_LENGTH_THRESHOLD = 5;
const KV_SPARE_TRIGGER = 0.1;
const QUEUE_SPARE_TRIGGER = 3;

/**
 * One replica more when the replicas have too little to spare below saturation, one less when they would still have enough
 * to spare without one: llm-d's workload variant autoscaler in its saturation mode, on the means over the replicas. It
 * waits while replicas start or drain.
 * https://github.com/llm-d-incubation/workload-variant-autoscaler (docs, saturation scaling)
 */
export class SaturationPolicy implements FleetPolicy {
  readonly name = 'saturation';

  reset(): void {}

  act({ observation, previousAction, stepIndex }: FleetStep): FleetAction {
    const { replicas_ready: ready, replicas_starting, replicas_draining, server } = observation;
    if (stepIndex === 0 || ready === 0 || replicas_starting + replicas_draining > 0) return previousAction;
    const kv = observation.kv_cache_usage_perc;
    const queue = observation.num_requests_waiting / ready;
    const { replicas } = previousAction;
    if (!hasSpare(kv, queue))
      return { ...previousAction, replicas: Math.min(server.max_replicas, replicas + 1) };
    const share = ready / (ready - 1);
    if (ready > 1 && hasSpare(kv * share, queue * share))
      return { ...previousAction, replicas: replicas - 1 };
    return previousAction;
  }
}

function hasSpare(kv: number, queue: number): boolean {
  return KV_CACHE_THRESHOLD - kv >= KV_SPARE_TRIGGER && QUEUE_LENGTH_THRESHOLD - queue >= QUEUE_SPARE_TRIGGER;
}
