import {
  type EngineProfile,
  percentileOfSorted,
  type SimulationRun,
  scaleRate,
  simulateCluster,
  simulateTrace,
} from '@servegym/simulator';
import type { Candidate } from './candidate.ts';
import type { SloTerm } from './slo.ts';
import type { Traffic } from './traffic.ts';

/** What came of the traffic at one load, block by block. */
export interface LoadPoint {
  /** Times the rate of the traffic. */
  readonly load: number;
  /** Requests of each block. */
  readonly requests: readonly number[];
  /**
   * For each term of the SLO and each block: requests above the limit; for a mean, the sum of the latencies over the
   * limit. A request that was not served counts as far above.
   */
  readonly excess: readonly (readonly number[])[];
  /** Requests of each block that meet every limit: those with an even number, and those with an odd one. */
  readonly goodEven: readonly number[];
  readonly goodOdd: readonly number[];
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly tpotP50Ms: number;
  readonly tpotP99Ms: number;
  readonly e2eP99Ms: number;
  /** The value of each term of the SLO, ms. */
  readonly values: readonly number[];
}

/** What a request that is never served counts for in a mean, times the limit. */
const UNSERVED = 1000;

/**
 * Serves the traffic with a candidate's settings: at `load` on one engine, or on the `replicas` engines together.
 * Engines that serve in pairs are simulated as one pair with its part of the traffic.
 */
export function measureLoad(
  profile: EngineProfile,
  candidate: Candidate,
  { trace, blockStarts }: Traffic,
  slo: readonly SloTerm[],
  { load, seed, replicas = 1 }: { readonly load: number; readonly seed: number; readonly replicas?: number },
): LoadPoint {
  const { split, maxNumBatchedTokens, prefixCaching, ...config } = candidate;
  const common = { profile, seed, maxNumBatchedTokens, prefixCaching };
  const run = split
    ? simulateCluster(scaleRate(trace, (2 * load) / replicas), {
        ...common,
        config: { ...config, split, schedulingPolicy: 'fcfs' },
      })
    : simulateTrace(scaleRate(trace, load), {
        ...{ ...common, ...config },
        ...(replicas > 1 && { replicas, router: 'least_loaded' }),
      });
  const blocks = blockStarts.length - 1;
  const blockOf = new Int32Array(trace.arrivalMs.length);
  const requests: number[] = [];
  for (let b = 0; b < blocks; b += 1) {
    blockOf.fill(b, blockStarts[b], blockStarts[b + 1]);
    requests.push(blockStarts[b + 1]! - blockStarts[b]!);
  }
  const excess = slo.map(({ quantile }) =>
    requests.map((count) => (quantile === null ? count * UNSERVED : count)),
  );
  const goodEven = new Array<number>(blocks).fill(0);
  const goodOdd = new Array<number>(blocks).fill(0);
  for (let i = 0; i < run.completed; i += 1) {
    const id = run.ids[i]!;
    const block = blockOf[id]!;
    let isGood = true;
    for (const [t, { metric, quantile, limitMs }] of slo.entries()) {
      const latency = latencies(run, metric)[i]!;
      // A request of one token has no TPOT.
      const isWithin = !(latency > limitMs);
      if (quantile === null) excess[t]![block]! += (Number.isNaN(latency) ? 0 : latency / limitMs) - UNSERVED;
      else if (isWithin) excess[t]![block]! -= 1;
      if (!isWithin) isGood = false;
    }
    if (isGood) (id % 2 === 0 ? goodEven : goodOdd)[block]! += 1;
  }
  const sorted = {
    ttft: run.ttftMs.toSorted(),
    tpot: run.tpotMs.filter((ms) => !Number.isNaN(ms)).sort(),
    e2e: run.e2eMs.toSorted(),
  };
  return {
    ...{ load, requests, excess, goodEven, goodOdd },
    ttftP50Ms: percentileOfSorted(sorted.ttft, 50),
    ttftP99Ms: percentileOfSorted(sorted.ttft, 99),
    tpotP50Ms: percentileOfSorted(sorted.tpot, 50),
    tpotP99Ms: percentileOfSorted(sorted.tpot, 99),
    e2eP99Ms: percentileOfSorted(sorted.e2e, 99),
    values: slo.map(({ metric, quantile }) =>
      quantile === null ? mean(sorted[metric]) : percentileOfSorted(sorted[metric], 100 * quantile),
    ),
  };
}

/**
 * How far the SLO is used up at a load: at most 1 where it holds. For a quantile, the share of the requests above the
 * limit over the share that may be; for a mean, the mean over the limit. The largest of the terms.
 *
 * @param weights How often each block counts; default once.
 */
export function sloUse(point: LoadPoint, slo: readonly SloTerm[], weights?: ArrayLike<number>): number {
  let total = 0;
  for (const [b, count] of point.requests.entries()) total += count * (weights?.[b] ?? 1);
  let use = 0;
  for (const [t, { quantile }] of slo.entries()) {
    let sum = 0;
    for (const [b, each] of point.excess[t]!.entries()) sum += each * (weights?.[b] ?? 1);
    const allowed = quantile === null ? 1 : Math.max(1e-9, 1 - quantile);
    use = Math.max(use, sum / total / allowed);
  }
  return use;
}

function latencies(run: SimulationRun, metric: SloTerm['metric']): Float64Array {
  if (metric === 'ttft') return run.ttftMs;
  return metric === 'tpot' ? run.tpotMs : run.e2eMs;
}

function mean(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}
