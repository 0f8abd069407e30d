import {
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
import { type Candidate, engineUsd, startedWith } from './candidate.ts';
import type { EngineChoice, Evaluator } from './evaluator.ts';
import type { AutoscalerChoice, RouterChoice } from './search-space.ts';
import { type Scored, Searcher, type SearchStage } from './searcher.ts';
import { type SloTerm, sloStatistic } from './slo.ts';
import { someBlocks, type Traffic } from './traffic.ts';

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
export interface AutoscaledInput extends AutoscaledHow, EngineChoice {
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

export type Autoscaled = ReturnType<typeof serveAutoscaled>;

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
  { profile, candidate }: EngineChoice,
  { arrivalMs, inputTokens, outputTokens, adapters, prefixBlocks, followUps }: Trace,
  slo: readonly SloTerm[],
  { autoscaler, router, most, seed }: AutoscaledHow,
) {
  const count = arrivalMs.length;
  const settings = (replicas: number): FleetSettings => ({
    ...{ replicas: [replicas], prefillReplicas: 0, admissionSeconds: Number.POSITIVE_INFINITY },
    routing: ROUTING[router === 'prefix_aware' ? router : 'least_loaded'],
    maxNumBatchedTokens: candidate.maxNumBatchedTokens,
    maxNumSeqs: candidate.maxNumActiveSeqs || candidate.maxNumSeqs,
  });
  const { weights } = candidate;
  const pool = { profile: startedWith(profile, candidate), weights, coldStartSeconds: COLD_START_S };
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
  const { requests_in_flight: targetPerReplica, down_seconds: downSeconds } = autoscaler;
  const policy = startPolicy(
    podAutoscaler((total: number) => ({ total, targetPerReplica, most }), {
      ...{ downSeconds, windowSeconds: WINDOW_S },
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
  for (const each of Object.values(latencies)) each.sort((a, b) => a - b);
  const uses = slo.map((term) => {
    const own = latencies[term.metric];
    return own.length > 0 ? sloStatistic(term, own) / term.limitMs : Number.MAX_VALUE;
  });
  return {
    autoscaler,
    /** Engines that are billed, on average over the trace. */
    engines: (starting + ready + draining) / (fleet.now / TICKS_PER_S),
    /** The largest figure over its limit, at most 1 where the trace meets the SLO. */
    timesLimit: latencies.ttft.length === count ? Math.max(...uses) : Number.MAX_VALUE,
    ttftP99Ms: percentileOfSorted(latencies.ttft, 99),
    tpotP99Ms: percentileOfSorted(latencies.tpot, 99),
  };
}

/** Engines that keep the SLO on a trace while all of them run. */
export interface ScalableFleet extends EngineChoice {
  readonly router: RouterChoice;
  /** Engines that there are at most, and in the beginning. */
  readonly most: number;
  /** No schedule on them costs less, USD an hour. Default 0. */
  readonly leastUsd?: number;
}

interface Point {
  readonly fleet: number;
  /** Place among the autoscalers. */
  readonly at: number;
}

/** Length of a stretch, ms: several times what an engine takes to start and to leave. */
const STRETCH_MS = 1_800_000;
/** Share of the stretches that all autoscalers are tried on. */
const SHORT = 1 / 6;
const WHOLE = { blocks: Number.POSITIVE_INFINITY };
const NEXT: SearchStage = { name: 'autoscalers beside the best', ...WHOLE };
/** USD an hour that an SLO counts as, for each time that it is exceeded: more than any fleet costs. */
const MISSED = 1e9;

/**
 * Of autoscalers, for each of the fleets the one with the lowest bill that keeps the SLO on the whole trace: `null` where none does,
 * `undefined` where a bound or a setting rules the fleet out. All are tried on stretches of half an hour up to the busiest, and half of
 * those of each fleet on the whole trace.
 *
 * @param most a fleet whose least cost is above this many USD an hour is not looked at
 */
export async function searchAutoscalers(
  evaluator: Evaluator,
  trace: Trace,
  fleets: readonly ScalableFleet[],
  autoscalers: readonly AutoscalerChoice[],
  most = Number.POSITIVE_INFINITY,
) {
  const whole = inStretches(trace);
  const blocks = Math.ceil(SHORT * (whole.blockStarts.length - 1));
  const short = someBlocks(whole, blocks);
  const searcher = new Searcher<
    Point,
    Point & Autoscaled & Scored & { readonly usdPerHour: number },
    SearchStage
  >({
    keyOf: ({ fleet, at }) => `${fleet} ${at}`,
    kindOf: ({ fleet }) => String(fleet),
    mayBeKept: ({ fleet }) => (fleets[fleet].leastUsd ?? 0) <= most,
    async evaluate(points, stage) {
      const found = await evaluator.autoscaled(
        stage.blocks === blocks ? short : whole,
        points.map(({ fleet, at }) => {
          const { profile, candidate, router, most } = fleets[fleet];
          return { profile, candidate, router, most, autoscaler: autoscalers[at] };
        }),
      );
      return points.map((point, i) => {
        const { engines, timesLimit } = found[i];
        const usdPerHour = engines * engineUsd(fleets[point.fleet].profile);
        const score = timesLimit <= 1 ? -usdPerHour : -MISSED * timesLimit;
        return { ...point, ...found[i], usdPerHour, score };
      });
    },
  });
  const isTried = fleets.map(({ candidate, most }) => canScale(candidate, most, evaluator.slo));
  const points = fleets.flatMap((_, fleet) =>
    isTried[fleet] ? autoscalers.map((_, at): Point => ({ fleet, at })) : [],
  );
  const first: SearchStage = { name: 'autoscalers on the busier stretches', blocks };
  const second: SearchStage = { name: 'autoscalers on all of the trace', ...WHOLE, keep: 1 / 2 };
  await searcher.halve(points, short === whole ? [second] : [first, second]);
  await searcher.climb(NEXT, ({ fleet, at }) =>
    [at - 1, at + 1].filter((near) => near in autoscalers).map((near) => ({ fleet, at: near })),
  );
  const { ranked, agreements, ruledOut } = searcher;
  const found = fleets.map((_, fleet) => {
    const best = ranked.find((each) => each.fleet === fleet);
    return best && best.timesLimit > 1 ? null : best;
  });
  return { found, agreements, ruledOut };
}

function inStretches(trace: Trace): Traffic {
  const { arrivalMs } = trace;
  const blockStarts = [0];
  for (const [i, ms] of arrivalMs.entries()) {
    if (Math.floor(ms / STRETCH_MS) > Math.floor(arrivalMs[blockStarts.at(-1)!] / STRETCH_MS))
      blockStarts.push(i);
  }
  return { trace, blockStarts: [...blockStarts, arrivalMs.length] };
}
