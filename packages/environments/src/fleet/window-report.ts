import { msFromTicks, type ReplicaState, TICKS_PER_S } from '@servegym/simulator';
import { REQUEST_CLASSES, type RequestClass } from '../tasks.ts';
import { type FleetEpisode, prefixHitRate } from './fleet-episode.ts';
import type { FleetTask } from './fleet-task.ts';

/** One class over the last window. Latencies in ms; 0 where there was none to measure. */
export interface FleetClassReport {
  readonly name: RequestClass;
  readonly arrived: number;
  readonly completed: number;
  /** Completed inside their objectives. */
  readonly attained: number;
  readonly refused: number;
  /** Requests that wait or run at the end of the window. */
  readonly in_flight: number;
  readonly ttft_p50_ms: number;
  readonly ttft_p99_ms: number;
}

/** One replica at the end of the last window. */
export interface ReplicaReport {
  /** Number among all replicas of the episode. */
  readonly id: number;
  readonly profile: string;
  readonly state: ReplicaState;
  readonly role: 'mixed' | 'prefill' | 'decode';
  /** Time until it serves, s; 0 once it does. */
  readonly ready_in_s: number;
  /** Requests that the gateway sent to it in the window. */
  readonly routed: number;
  readonly running: number;
  readonly waiting: number;
  /** Share of the prompt tokens admitted in the window that its cache had, 0..1. */
  readonly prefix_cache_hit_rate: number;
  readonly kv_blocks_used: number;
  readonly kv_blocks_total: number;
}

/** Details of a window for developers and the console, beyond the observation. Goes into `metadata`. */
export interface FleetWindowReport {
  readonly window_s: number;
  /** Simulated time at the end of the window, s. */
  readonly window_end_s: number;
  /** Parts of the reward, in USD. */
  readonly reward_components: { readonly revenue_usd: number; readonly gpu_usd: number };
  /** USD that a reward of 1 stands for. */
  readonly reference_usd: number;
  readonly objectives: FleetTask['objectives'];
  /** Share of the answered and refused requests that missed their objectives: a cost signal for constrained learning. */
  readonly slo_cost: number;
  readonly classes: readonly FleetClassReport[];
  readonly replicas: readonly ReplicaReport[];
  /** Requests at the gateway that no replica can take. */
  readonly held: number;
  readonly events: readonly { readonly kind: string; readonly at_s: number; readonly replica: number }[];
}

export function fleetWindowReport(episode: FleetEpisode): FleetWindowReport {
  const { task, fleet, ledger, window, inFlight, profiles } = episode;
  const judged = ledger.completed + ledger.refused;
  return {
    window_s: task.windowSeconds,
    window_end_s: window * task.windowSeconds,
    reward_components: { revenue_usd: ledger.revenueUsd, gpu_usd: episode.billUsd },
    reference_usd: task.referenceUsd,
    objectives: task.objectives,
    slo_cost: judged === 0 ? 0 : 1 - ledger.attained / judged,
    classes: REQUEST_CLASSES.map((name, kind) => {
      const { arrived, completed, attained, refused, ttft } = ledger.classes[kind];
      return {
        ...{ name, arrived, completed, attained, refused, in_flight: inFlight[kind] },
        ttft_p50_ms: ttft.quantileMs(0.5),
        ttft_p99_ms: ttft.quantileMs(0.99),
      };
    }),
    replicas: fleet.replicas.map(({ ordinal, pool, state, readyAt, engine, routed }) => ({
      ...{ id: ordinal, profile: profiles[pool].name, state, role: engine.role, routed },
      ready_in_s: state === 'starting' ? Math.max(0, readyAt - fleet.now) / TICKS_PER_S : 0,
      running: engine.runningCount,
      waiting: engine.waitingCount + engine.futureCount,
      prefix_cache_hit_rate: prefixHitRate(engine.counters),
      kv_blocks_used: engine.kvBlocksUsed,
      kv_blocks_total: engine.kvBlocksTotal,
    })),
    held: fleet.heldCount,
    events: fleet.events.map(({ kind, at, replica }) => ({ kind, at_s: msFromTicks(at) / 1000, replica })),
  };
}
