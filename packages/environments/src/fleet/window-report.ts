import { msFromTicks, TICKS_PER_S } from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import { type FleetEpisode, prefixHitRate } from './fleet-episode.ts';

/** Details of a window for developers and the console, beyond the observation. Goes into `metadata`. */
export type FleetWindowReport = ReturnType<typeof fleetWindowReport>;

/** Report of the last window. Times in s, latencies in ms, 0 where there was none to measure; money in USD. */
export function fleetWindowReport(episode: FleetEpisode) {
  const { task, fleet, ledger, window, inFlight, profiles } = episode;
  const judged = ledger.completed + ledger.refused;
  return {
    window_s: task.windowSeconds,
    window_end_s: window * task.windowSeconds,
    reward_components: { revenue_usd: ledger.revenueUsd, gpu_usd: episode.billUsd },
    /** USD that a reward of 1 stands for. */
    reference_usd: task.referenceUsd,
    objectives: task.objectives,
    /** Share of the answered and refused requests that missed their objectives: a cost signal for constrained learning. */
    slo_cost: judged === 0 ? 0 : 1 - ledger.attained / judged,
    classes: REQUEST_CLASSES.map((name, kind) => {
      const { arrived, completed, attained, refused, ttft } = ledger.classes[kind];
      return {
        ...{ name, arrived, completed, attained, refused },
        /** Requests that wait or run at the end of the window. */
        in_flight: inFlight[kind],
        ttft_p50_ms: ttft.quantileMs(0.5),
        ttft_p99_ms: ttft.quantileMs(0.99),
      };
    }),
    /** Replicas at the end of the window, by their number among all of the episode. */
    replicas: fleet.replicas.map(({ ordinal, pool, state, readyAt, engine, routed }) => ({
      ...{ id: ordinal, profile: profiles[pool].name, state, role: engine.role },
      /** Requests that the gateway sent to it in the window. */
      routed,
      /** Time until it serves; 0 once it does. */
      ready_in_s: state === 'starting' ? Math.max(0, readyAt - fleet.now) / TICKS_PER_S : 0,
      running: engine.runningCount,
      waiting: engine.waitingCount + engine.futureCount,
      /** Share of the prompt tokens admitted in the window that its cache had, 0..1. */
      prefix_cache_hit_rate: prefixHitRate(engine.counters),
      kv_blocks_used: engine.kvBlocksUsed,
      kv_blocks_total: engine.kvBlocksTotal,
    })),
    /** Requests at the gateway that no replica can take. */
    held: fleet.heldCount,
    events: fleet.events.map(({ kind, at, replica }) => ({ kind, at_s: msFromTicks(at) / 1000, replica })),
  };
}
