import { EnvironmentError } from '@servegym/openenv/definition';
import type { Trace } from '@servegym/simulator';
import { countsOf, dispersion, fitArrivals } from './fit-arrivals.ts';
import { fitLengths, fitPrefixes, round } from './fit-lengths.ts';
import type { FittedWorkload, WorkloadFit } from './fitted-workload.ts';
import { drawWorkload } from './fitted-workload.ts';

/** Fewer requests tell too little of their distributions. */
const LEAST_REQUESTS = 200;
/** A shorter trace does not show how the rate moves. */
const LEAST_SECONDS = 120;
/** Lengths of time over which the dispersion is reported, s. */
const SCALES = [1, 5, 10, 30, 60, 300];
/** The model is compared by this many times as much traffic as the trace has. */
const DRAWN = 20;

/** Names of a fitted workload, and the origin of its trace. */
export interface WorkloadIdentity {
  readonly id: string;
  readonly title: string;
  readonly source: string;
}

/**
 * Fits a workload to a trace, and says how near it comes.
 * @throws EnvironmentError `TRAFFIC_FIT` when the trace has fewer than 200 requests or lasts less than 120 s
 */
export function fitWorkload(trace: Trace, identity: WorkloadIdentity): FittedWorkload {
  const seconds = trace.arrivalMs[trace.arrivalMs.length - 1] / 1000;
  if (trace.arrivalMs.length < LEAST_REQUESTS || seconds < LEAST_SECONDS) {
    throw new EnvironmentError(
      'TRAFFIC_FIT',
      `Expected a trace of at least ${LEAST_REQUESTS} requests over ${LEAST_SECONDS} s, got ${trace.arrivalMs.length} over ${seconds.toFixed(0)} s: play it itself instead`,
    );
  }
  const unchecked = {
    ...identity,
    requests: trace.arrivalMs.length,
    seconds: round(seconds),
    arrivals: fitArrivals(trace),
    lengths: fitLengths(trace.inputTokens, trace.outputTokens),
    prefixes: fitPrefixes(trace),
  };
  return { ...unchecked, fit: checkFit(trace, unchecked) };
}

function checkFit(trace: Trace, model: Omit<FittedWorkload, 'fit'>): WorkloadFit {
  const { seconds } = model;
  const { levelSeconds } = model.arrivals;
  const drawn = drawWorkload({ ...model, fit: NO_FIT }, 0, seconds * DRAWN);
  const traced = Array.from(trace.arrivalMs, (ms) => ms / 1000);
  const half = trace.arrivalMs.length >> 1;
  const first = fitLengths(trace.inputTokens.subarray(0, half), trace.outputTokens.subarray(0, half));
  const fromHalf = drawWorkload({ ...model, lengths: first, fit: NO_FIT }, 1, seconds * DRAWN);
  const distance = (a: ArrayLike<number>, b: ArrayLike<number>) => round(distributionDistance(a, b));
  return {
    ks: {
      input: distance(trace.inputTokens, drawn.inputTokens),
      output: distance(trace.outputTokens, drawn.outputTokens),
      counts: distance(
        countsOf(traced, seconds, levelSeconds),
        countsOf(drawn.arrivalSeconds, seconds * DRAWN, levelSeconds),
      ),
      gaps: distance(gapsOf(traced), gapsOf(drawn.arrivalSeconds)),
    },
    heldOut: {
      input: distance(trace.inputTokens.subarray(half), fromHalf.inputTokens),
      output: distance(trace.outputTokens.subarray(half), fromHalf.outputTokens),
      halvesInput: distance(trace.inputTokens.subarray(half), trace.inputTokens.subarray(0, half)),
      halvesOutput: distance(trace.outputTokens.subarray(half), trace.outputTokens.subarray(0, half)),
    },
    dispersion: SCALES.filter((scale) => seconds >= 10 * scale).map((scale) => ({
      seconds: scale,
      trace: round(dispersion(countsOf(traced, seconds, scale))),
      model: round(dispersion(countsOf(drawn.arrivalSeconds, seconds * DRAWN, scale))),
    })),
  };
}

const NO_FIT: WorkloadFit = {
  ks: { input: 0, output: 0, counts: 0, gaps: 0 },
  heldOut: { input: 0, output: 0, halvesInput: 0, halvesOutput: 0 },
  dispersion: [],
};

function gapsOf(seconds: readonly number[]): number[] {
  return seconds.slice(1).map((at, i) => at - seconds[i]);
}

/** Kolmogorov-Smirnov's distance: the largest gap between two empirical distribution functions. */
export function distributionDistance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const left = Float64Array.from(a).sort();
  const right = Float64Array.from(b).sort();
  let distance = 0;
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const value = Math.min(left[i], right[j]);
    while (i < left.length && left[i] === value) i++;
    while (j < right.length && right[j] === value) j++;
    distance = Math.max(distance, Math.abs(i / left.length - j / right.length));
  }
  return distance;
}
