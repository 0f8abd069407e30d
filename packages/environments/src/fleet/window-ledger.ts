import {
  type CompletionLog,
  type EngineCounters,
  type FirstTokenLog,
  LatencyHistogram,
  msFromTicks,
  TICKS_PER_MS,
  TICKS_PER_S,
} from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import type { FleetEpisode } from './fleet-episode.ts';
import { type FleetRequests, requestPrices } from './fleet-requests.ts';
import type { FleetTask } from './fleet-task.ts';

/** One class over one window. */
class ClassLedger {
  arrived = 0;
  completed = 0;
  /** Completed inside their objectives. */
  attained = 0;
  refused = 0;
  /** Times to first token. */
  readonly ttft = new LatencyHistogram();

  clear(): void {
    this.arrived = this.completed = this.attained = this.refused = 0;
    this.ttft.clear();
  }
}

/** Arrivals, answers and earnings of one window. One object, reused. */
export class WindowLedger {
  readonly classes: readonly ClassLedger[] = REQUEST_CLASSES.map(() => new ClassLedger());
  readonly ttft = new LatencyHistogram();
  /** Price of the tokens inside their objectives, USD. */
  revenueUsd = 0;
  arrivedPromptTokens = 0;
  /** Output tokens of the requests completed. */
  answeredTokens = 0;
  readonly #requests: FleetRequests;
  readonly #prices: Float64Array;
  readonly #task: FleetTask;
  /** Tick at which each request arrived at the gateway. */
  readonly #arrivalTicks: Float64Array;

  constructor(task: FleetTask, requests: FleetRequests, arrivalTicks: Float64Array) {
    this.#task = task;
    this.#requests = requests;
    this.#prices = requestPrices(requests, task);
    this.#arrivalTicks = arrivalTicks;
  }

  /** Requests of all classes. */
  total(of: 'completed' | 'attained' | 'refused'): number {
    return this.classes.reduce((sum, each) => sum + each[of], 0);
  }

  clear(): void {
    for (const each of this.classes) each.clear();
    this.ttft.clear();
    this.revenueUsd = this.arrivedPromptTokens = this.answeredTokens = 0;
  }

  firstTokens({ ids, firstTokens, count }: FirstTokenLog): void {
    const { classes } = this.#requests;
    for (let i = 0; i < count; i++) {
      const ticks = firstTokens[i] - this.#arrivalTicks[ids[i]];
      this.ttft.add(ticks, 1);
      this.classes[classes[ids[i]]].ttft.add(ticks, 1);
    }
  }

  completions({ ids, firstTokens, lastTokens, outputs, count }: CompletionLog): void {
    const { classes } = this.#requests;
    const { objectives } = this.#task;
    for (let i = 0; i < count; i++) {
      const id = ids[i];
      const name = REQUEST_CLASSES[classes[id]];
      const ledger = this.classes[classes[id]];
      ledger.completed++;
      this.answeredTokens += outputs[i];
      const arrival = this.#arrivalTicks[id];
      const { ttftMs, tpotMs, e2eMs } = objectives[name];
      const gaps = outputs[i] - 1;
      const inTime =
        (ttftMs === undefined || firstTokens[i] - arrival <= ttftMs * TICKS_PER_MS) &&
        (tpotMs === undefined || lastTokens[i] - firstTokens[i] <= tpotMs * TICKS_PER_MS * gaps) &&
        (e2eMs === undefined || lastTokens[i] - arrival <= e2eMs * TICKS_PER_MS);
      if (!inTime) continue;
      ledger.attained++;
      this.revenueUsd += this.#prices[id];
    }
  }
}

/** Share of the prompt tokens that were found in caches, of all admitted. */
export function prefixHitRate({ cachedTokens, prefillTokens }: EngineCounters): number {
  const admitted = cachedTokens + prefillTokens;
  return admitted === 0 ? 0 : cachedTokens / admitted;
}

/** Details of a window for developers and the console, beyond the observation. Goes into `metadata`. */
export type FleetWindowReport = ReturnType<typeof fleetWindowReport>;

/** Report of the last window. Times in s, latencies in ms, 0 where there was none to measure; money in USD. */
export function fleetWindowReport(episode: FleetEpisode) {
  const { task, fleet, ledger, window, inFlight, profiles } = episode;
  const judged = ledger.total('completed') + ledger.total('refused');
  return {
    window_s: task.windowSeconds,
    window_end_s: window * task.windowSeconds,
    reward_components: { revenue_usd: ledger.revenueUsd, gpu_usd: episode.billUsd },
    /** USD that a reward of 1 stands for. */
    reference_usd: task.referenceUsd,
    objectives: task.objectives,
    /** Share of the answered and refused requests that missed their objectives: a cost signal for constrained learning. */
    slo_cost: judged === 0 ? 0 : 1 - ledger.total('attained') / judged,
    classes: REQUEST_CLASSES.map((name, kind) => {
      const { arrived, completed, attained, refused, ttft } = ledger.classes[kind];
      return {
        name,
        arrived,
        completed,
        attained,
        refused,
        /** Requests that wait or run at the end of the window. */
        in_flight: inFlight[kind],
        ttft_p50_ms: ttft.quantileMs(0.5),
        ttft_p99_ms: ttft.quantileMs(0.99),
      };
    }),
    /** Replicas at the end of the window, by their number among all of the episode. */
    replicas: fleet.replicas.map(({ ordinal, pool, state, readyAt, engine, routed }) => ({
      id: ordinal,
      profile: profiles[pool].name,
      state,
      role: engine.role as 'mixed' | 'prefill' | 'decode',
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
