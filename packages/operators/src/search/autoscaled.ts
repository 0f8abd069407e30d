import {
  type EngineProfile,
  Fleet,
  type FleetSettings,
  MAX_FLEET_REPLICAS,
  msFromTicks,
  PromptChains,
  podAutoscaler,
  startPolicy,
  TICKS_PER_MS,
  TICKS_PER_S,
  type Trace,
} from '@servegym/simulator';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { type Candidate, startedWith } from './candidate.ts';
import type { AutoscalerChoice, RouterChoice } from './search-space.ts';
import { type SloTerm, sloStatistic } from './slo.ts';

/** Period in which the autoscaler sees the requests in flight, s: two of Kubernetes' syncs. */
const WINDOW_S = 30;
/** Least and most seconds that an engine takes to start, as in the tasks of `fleet`. */
const COLD_START_S = [30, 120] as const;
/** Of the routers, those that a fleet whose engines come and go has. */
const ROUTING = {
  least_loaded: { queue: 1, cache: 0, prefix: 0 },
  prefix_aware: { queue: 0.5, cache: 0, prefix: 1 },
} as const;

/** Input of the job: engines, an autoscaler, and the name of the shared traffic, whose trace is served as a whole. */
export interface AutoscaledInput extends AutoscaledHow {
  readonly profile: EngineProfile;
  readonly candidate: Candidate;
  readonly slo: readonly SloTerm[];
  readonly traffic: string;
}

interface AutoscaledHow {
  readonly autoscaler: AutoscalerChoice;
  readonly router: RouterChoice;
  /** Engines that there are at most, and in the beginning. */
  readonly most: number;
  readonly seed: number;
}

/** What an autoscaler makes of engines and a trace. */
export interface Autoscaled {
  readonly autoscaler: AutoscalerChoice;
  /** Engines that are billed, on average over the trace. */
  readonly engines: number;
  /** The largest figure over its limit, at most 1 where the trace meets the SLO. */
  readonly timesLimit: number;
  readonly ttftP99Ms: number;
  readonly tpotP99Ms: number;
}

/**
 * Whether engines with these settings can come and go: all alike, without drafts, which `Fleet` does not have, and without
 * priority classes, which are not told apart here.
 */
export function canScale(
  { split, speculationDepth, prefixCaching, priority }: Candidate,
  engines: number,
  slo: readonly SloTerm[],
): boolean {
  const isPlain = split === false && speculationDepth === 0 && prefixCaching && !priority;
  const boundsAll = slo.every(({ priorityClass }) => priorityClass === undefined);
  return isPlain && boundsAll && engines > 1 && engines <= MAX_FLEET_REPLICAS;
}

/**
 * Serves a whole trace with engines that an autoscaler starts and stops: as many requests in flight on each, by
 * Kubernetes' HorizontalPodAutoscaler. It begins with `most` engines. Follow-ups wait for the answer before them.
 */
export function serveAutoscaled(
  { profile, candidate }: { readonly profile: EngineProfile; readonly candidate: Candidate },
  trace: Trace,
  slo: readonly SloTerm[],
  { autoscaler, router, most, seed }: AutoscaledHow,
): Autoscaled {
  const { arrivalMs, inputTokens, outputTokens, adapters, prefixBlocks, followUps } = trace;
  const count = arrivalMs.length;
  const settings = (replicas: number): FleetSettings => ({
    ...{ replicas: [replicas], prefillReplicas: 0, admissionSeconds: Number.POSITIVE_INFINITY },
    routing: ROUTING[router === 'prefix_aware' ? router : 'least_loaded'],
    maxNumBatchedTokens: candidate.maxNumBatchedTokens,
    maxNumSeqs: candidate.maxNumActiveSeqs || candidate.maxNumSeqs,
  });
  const pool = {
    profile: startedWith(profile, candidate),
    weights: candidate.weights,
    coldStartSeconds: COLD_START_S,
  };
  const chains = prefixBlocks && PromptChains.of(prefixBlocks);
  const arrivals = new Float64Array(count);
  const latencies = { ttft: [] as number[], tpot: [] as number[], e2e: [] as number[] };
  const next = Map.groupBy(followUps?.previous.keys() ?? [], (i) => followUps!.previous[i]);
  let waiting = 0;
  const submit = (id: number, arrival: number) => {
    arrivals[id] = arrival;
    waiting++;
    const [input, output] = [inputTokens[id], outputTokens[id]];
    fleet.submit({
      ...{ id, arrival, priority: 0, input, output, adapter: adapters?.of[id] },
      prefix: chains?.prefixOf(id, input, output) ?? null,
    });
  };
  const fleet = new Fleet(
    settings(most),
    { pools: [pool], maxReplicas: most, seed },
    {
      firstTokens: () => {},
      refused: () => waiting--,
      completions(log) {
        for (let i = 0; i < log.count; i++) {
          const id = log.ids[i];
          waiting--;
          latencies.ttft.push(msFromTicks(log.firstTokens[i] - arrivals[id]));
          latencies.e2e.push(msFromTicks(log.lastTokens[i] - arrivals[id]));
          if (log.outputs[i] > 1)
            latencies.tpot.push(msFromTicks(log.lastTokens[i] - log.firstTokens[i]) / (log.outputs[i] - 1));
          for (const follower of next.get(id) ?? [])
            submit(follower, log.lastTokens[i] + Math.round(followUps!.thinkMs[follower] * TICKS_PER_MS));
        }
      },
    },
  );
  const policy = startPolicy(
    podAutoscaler((total: number) => ({ total, targetPerReplica: autoscaler.requests_in_flight, most }), {
      downSeconds: autoscaler.down_seconds,
      windowSeconds: WINDOW_S,
    }),
  );
  let replicas = most;
  for (let started = 0, now = 0; started < count || waiting > 0; ) {
    now += WINDOW_S;
    for (; started < count && arrivalMs[started] < 1000 * now; started++)
      if ((followUps?.previous[started] ?? -1) < 0)
        submit(started, Math.round(arrivalMs[started] * TICKS_PER_MS));
    fleet.runUntil(now * TICKS_PER_S);
    fleet.clearLogs();
    const busy = fleet.replicas.reduce((sum, { requests }) => sum + requests, fleet.heldCount);
    replicas = Number(policy.scale!(busy, { replicas }, now));
    fleet.configure(settings(replicas));
  }
  const { starting, ready, draining } = fleet.replicaSeconds(0);
  const sorted = {
    ...{ ttft: latencies.ttft.sort((a, b) => a - b), tpot: latencies.tpot.sort((a, b) => a - b) },
    e2e: latencies.e2e.sort((a, b) => a - b),
  };
  const uses = slo.map((term) => {
    const own = sorted[term.metric];
    return own.length > 0 ? sloStatistic(term, own) / term.limitMs : Number.MAX_VALUE;
  });
  return {
    ...{ autoscaler, engines: (starting + ready + draining) / (fleet.now / TICKS_PER_S) },
    timesLimit: latencies.ttft.length === count ? Math.max(...uses) : Number.MAX_VALUE,
    ttftP99Ms: percentileOfSorted(sorted.ttft, 99),
    tpotP99Ms: percentileOfSorted(sorted.tpot, 99),
  };
}
