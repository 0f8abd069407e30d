import {
  admissionByClass,
  type EngineProfile,
  kvAware,
  type PolicyFunctions,
  type RequestView,
  type SimulationOptions,
  type SimulationRun,
  scaleRate,
  simulateTrace,
} from '@servegym/simulator';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { type Candidate, fewestEngines, splitParts, startedWith } from './candidate.ts';
import type { RouterChoice } from './search-space.ts';
import { type SloTerm, sloStatistic } from './slo.ts';
import { requestRate, type Traffic } from './traffic.ts';

/** Measurements of the traffic at one load, block by block. */
export type LoadPoint = ReturnType<typeof measureLoad>;

/** Value of a request that is never served in a mean, times the limit. */
const UNSERVED = 1000;

/** Load that a traffic is served at, and engines that serve it together. */
export interface ServedLoad {
  readonly load: number;
  /** Seed of the acceptance of draft tokens. */
  readonly seed: number;
  /** Engines. Default one, or the fewest of a split, of which each gets the load. */
  readonly replicas?: number;
  /** Default `least_loaded`. */
  readonly router?: RouterChoice;
  /** KV blocks of an engine, instead of what its memory holds. */
  readonly kvBlocks?: number;
  readonly onIterations?: SimulationOptions['onIterations'];
}

/** Serves the traffic with a candidate's settings. */
export function serveTraffic(
  profile: EngineProfile,
  candidate: Candidate,
  traffic: Traffic,
  { load, seed, replicas, router = 'least_loaded', kvBlocks, onIterations }: ServedLoad,
): SimulationRun {
  const { split, priority, prefixCaching } = candidate;
  const { trace, priorities, concurrency } = traffic;
  const fewest = fewestEngines(candidate);
  const engines = replicas ?? fewest;
  const times = replicas === undefined ? load * fewest : load;
  const groups = engines / fewest;
  const { prefill, decode } = split === false ? { prefill: 0, decode: 0 } : splitParts(split);
  const policy = policyOf(candidate, router);
  const isAlone = engines === 1 && policy?.admit === undefined;
  const routed = { router: typeof router === 'string' ? router : ('kv_aware' as const), policy };
  const { maxNumBatchedTokens, kvBudgetFraction, speculationDepth, weights } = candidate;
  return simulateTrace(scaleRate(trace, times), {
    ...{ profile: startedWith(profile, candidate), maxNumBatchedTokens, kvBudgetFraction },
    ...{ speculationDepth, weights, maxNumSeqs: candidate.maxNumActiveSeqs || candidate.maxNumSeqs },
    ...{ kvBlocks, seed, prefixCaching, priorities, onIterations },
    schedulingPolicy: priority ? 'priority' : 'fcfs',
    ...(concurrency !== undefined && { concurrency: Math.max(1, Math.round(times * concurrency)) }),
    ...(split === false
      ? { ...(!isAlone && { replicas: engines, ...routed }) }
      : { split: { prefill: prefill * groups, decode: decode * groups }, ...routed }),
  });
}

/** What the gateway decides beside a named router: weights, which requests it takes, and which are prefilled apart. */
function policyOf(
  { maxLocalPrefillLength: local, admissionQueueSeconds: seconds }: Candidate,
  router: RouterChoice,
): PolicyFunctions | undefined {
  const { prefill_load_scale: prefillLoadScale, overlap_score_credit: overlapScoreCredit } = Object(router);
  if (typeof router === 'string' && seconds === 0 && local === 0) return undefined;
  return {
    ...(typeof router !== 'string' && kvAware({ prefillLoadScale, overlapScoreCredit })),
    ...(seconds > 0 && admissionByClass(seconds)),
    ...(local > 0 && { disaggregate: ({ prompt_tokens: tokens }: RequestView) => tokens > local }),
  };
}

export function measureLoad(
  profile: EngineProfile,
  candidate: Candidate,
  traffic: Traffic,
  slo: readonly SloTerm[],
  served: ServedLoad,
) {
  const { load, replicas } = served;
  const { trace, blockStarts, priorities } = traffic;
  const run = serveTraffic(profile, candidate, traffic, served);
  const blocks = blockStarts.length - 1;
  const blockOf = new Int32Array(trace.arrivalMs.length);
  const requests = blockStarts.slice(1).map((end, b) => end - blockStarts[b]);
  for (let b = 0; b < blocks; b += 1) blockOf.fill(b, blockStarts[b], blockStarts[b + 1]);
  const classRequests = slo.map(({ priorityClass }) =>
    priorityClass === undefined
      ? null
      : requests.map(
          (_, b) =>
            (priorities ?? new Uint8Array())
              .subarray(blockStarts[b], blockStarts[b + 1])
              .filter((each) => each === priorityClass).length,
        ),
  );
  const excess = slo.map(({ quantile }, t) =>
    (classRequests[t] ?? requests).map((count) => (quantile === null ? count * UNSERVED : count)),
  );
  const goodEven = new Array<number>(blocks).fill(0);
  const goodOdd = new Array<number>(blocks).fill(0);
  for (let i = 0; i < run.completed; i += 1) {
    const id = run.ids[i];
    const block = blockOf[id];
    let isGood = true;
    for (const [t, { metric, quantile, limitMs, priorityClass }] of slo.entries()) {
      if (priorityClass !== undefined && priorities?.[id] !== priorityClass) continue;
      const latency = run[`${metric}Ms` as const][i];
      // A request of one token has no TPOT.
      const isWithin = !(latency > limitMs);
      if (quantile === null) excess[t][block] += (Number.isNaN(latency) ? 0 : latency / limitMs) - UNSERVED;
      else if (isWithin) excess[t][block] -= 1;
      if (!isWithin) isGood = false;
    }
    if (isGood) (id % 2 === 0 ? goodEven : goodOdd)[block] += 1;
  }
  const sorted = {
    ttft: run.ttftMs.toSorted(),
    tpot: run.tpotMs.filter((ms) => !Number.isNaN(ms)).sort(),
    e2e: run.e2eMs.toSorted(),
  };
  return {
    /** Times the rate of the traffic. */
    load,
    /** Requests/s: those of the traffic, or with a concurrency those that were served. */
    rate:
      traffic.concurrency === undefined
        ? load * requestRate(traffic)
        : (1000 * run.completed) / run.simulatedMs / (replicas === undefined ? fewestEngines(candidate) : 1),
    /** Requests of each block. */
    requests,
    /** The same for each term of the SLO that bounds a priority class: requests of that class. Else `null`. */
    classRequests,
    /**
     * For each term of the SLO and each block: requests above the limit; for a mean, the sum of the latencies over the
     * limit. A request that was not served counts as far above.
     */
    excess,
    /** Requests of each block that meet every limit: those with an even number, and those with an odd one. */
    goodEven,
    goodOdd,
    ttftP99Ms: percentileOfSorted(sorted.ttft, 99),
    tpotP99Ms: percentileOfSorted(sorted.tpot, 99),
    /** The value of each term of the SLO, ms. */
    values: slo.map((term) => {
      const { metric, priorityClass } = term;
      const ofClass = (ms: number, i: number) =>
        priorities?.[run.ids[i]] === priorityClass && !Number.isNaN(ms);
      return sloStatistic(
        term,
        priorityClass === undefined ? sorted[metric] : run[`${metric}Ms` as const].filter(ofClass).sort(),
      );
    }),
  };
}

/**
 * Share of the SLO that is used up at a load: at most 1 where it holds. For a quantile, the share of the requests above the
 * limit over the share that may be; for a mean, the mean over the limit. The largest of the terms.
 *
 * @param weights How often each block counts; default once.
 */
export function sloUse(point: LoadPoint, slo: readonly SloTerm[], weights?: ArrayLike<number>): number {
  const all = weighted(point.requests, weights);
  let use = 0;
  for (const [t, { quantile }] of slo.entries()) {
    const own = point.classRequests[t];
    const total = own ? weighted(own, weights) : all;
    // A resample may have none of a class.
    if (total === 0) continue;
    const allowed = quantile === null ? 1 : Math.max(1e-9, 1 - quantile);
    use = Math.max(use, weighted(point.excess[t], weights) / total / allowed);
  }
  return use;
}

export function goodShare({ requests, goodEven, goodOdd }: LoadPoint): number {
  return (weighted(goodEven) + weighted(goodOdd)) / weighted(requests);
}

function weighted(counts: readonly number[], weights?: ArrayLike<number>): number {
  let total = 0;
  for (const [b, count] of counts.entries()) total += count * (weights?.[b] ?? 1);
  return total;
}
