import { EnvironmentError } from '@servegym/openenv/definition';
import type { Trace } from '@servegym/simulator';
import { portableMath } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { fitLengths, fitPrefixes, normalScores, round } from './fit-lengths.ts';
import { drawWorkload, evenQuantile } from './fitted-workload.ts';

/** Fewer requests tell too little of their distributions. */
const LEAST_REQUESTS = 200;
/** A shorter trace does not show how the rate moves. */
const LEAST_SECONDS = 120;
/** Lengths of time over which the dispersion is reported, s. */
const SCALES = [1, 5, 10, 30, 60, 300];
/** The model is compared by this many times as much traffic as the trace has. */
const DRAWN = 20;

/**
 * A workload fitted to a trace: draws as much traffic as is asked for. Arrivals are a Poisson process whose rate moves:
 * slowly, through levels whose distribution is tabled and which remember where they were, and from second to second by
 * a factor that is gamma distributed with mean 1. Lengths follow tabled quantiles and are correlated through normal
 * scores. Made by `fitWorkload`.
 */
export interface FittedWorkload {
  /** Value of `reset({traffic})`. */
  readonly id: string;
  readonly title: string;
  /** Origin of the trace, with its licence. */
  readonly source: string;
  /** Requests and seconds of the trace that it was fitted to. */
  readonly requests: number;
  readonly seconds: number;
  readonly arrivals: ReturnType<typeof fitArrivals>;
  readonly lengths: ReturnType<typeof fitLengths>;
  /** Prefixes that prompts share, where the trace has them. */
  readonly prefixes: ReturnType<typeof fitPrefixes>;
  readonly fit: ReturnType<typeof checkFit>;
}

/**
 * Fits a workload to a trace, and says how near it comes.
 * @throws EnvironmentError `TRAFFIC_FIT` when the trace has fewer than 200 requests or lasts less than 120 s
 */
export function fitWorkload(
  trace: Trace,
  identity: Pick<FittedWorkload, 'id' | 'title' | 'source'>,
): FittedWorkload {
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

/** Distances of the workload from its trace, Kolmogorov-Smirnov: the largest gap between two distributions. */
function checkFit(trace: Trace, model: Pick<FittedWorkload, 'seconds' | 'arrivals' | 'lengths'>) {
  const { seconds } = model;
  const { levelSeconds } = model.arrivals;
  const drawn = drawWorkload(model, 0, seconds * DRAWN);
  const traced = Array.from(trace.arrivalMs, (ms) => ms / 1000);
  const half = trace.arrivalMs.length >> 1;
  const first = fitLengths(trace.inputTokens.subarray(0, half), trace.outputTokens.subarray(0, half));
  const fromHalf = drawWorkload({ ...model, lengths: first }, 1, seconds * DRAWN);
  const distance = (a: ArrayLike<number>, b: ArrayLike<number>) => round(distributionDistance(a, b));
  return {
    /** Between the trace and a long draw from the model; counts are those in a level's time. */
    ks: {
      input: distance(trace.inputTokens, drawn.inputTokens),
      output: distance(trace.outputTokens, drawn.outputTokens),
      counts: distance(
        countsOf(traced, seconds, levelSeconds),
        countsOf(drawn.arrivalSeconds, seconds * DRAWN, levelSeconds),
      ),
      gaps: distance(gapsOf(traced), gapsOf(drawn.arrivalSeconds)),
    },
    /** Between a model fitted to the first half of the trace and its second half, and between the halves themselves. */
    heldOut: {
      input: distance(trace.inputTokens.subarray(half), fromHalf.inputTokens),
      output: distance(trace.outputTokens.subarray(half), fromHalf.outputTokens),
      halvesInput: distance(trace.inputTokens.subarray(half), trace.inputTokens.subarray(0, half)),
      halvesOutput: distance(trace.outputTokens.subarray(half), trace.outputTokens.subarray(0, half)),
    },
    /** Variance of the number of arrivals over its mean, at several scales: 1 for Poisson traffic. */
    dispersion: SCALES.filter((scale) => seconds >= 10 * scale).map((scale) => ({
      seconds: scale,
      trace: round(dispersion(countsOf(traced, seconds, scale))),
      model: round(dispersion(countsOf(drawn.arrivalSeconds, seconds * DRAWN, scale))),
    })),
  };
}

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

/** A level lasts this long where the clock of the trace allows, s. */
const LEVEL_SECONDS = 10;
/** Requests that a level has on average: fewer tell nothing of its rate. */
const LEAST_IN_LEVEL = 10;
/** A trace whose times come in steps of more than this does not tell what happens within a level, ms. */
const FINE_CLOCK_MS = 250;
/** Quantiles of the levels, less 1. */
const LEVELS = 40;
/** Autocorrelation is compared up to this many levels apart. */
const LAGS = 30;
const FAST_S = [5, 10, 20, 40];
const SLOW_S = [60, 120, 300, 600, 1200];

/** The rate of a trace: how its levels are distributed, how long they last, and what happens from second to second. */
function fitArrivals(trace: Trace) {
  const arrivalSeconds = Array.from(trace.arrivalMs, (ms) => ms / 1000);
  const seconds = arrivalSeconds[arrivalSeconds.length - 1];
  const stepMs = clockStepMs(trace.arrivalMs);
  const isFine = stepMs <= FINE_CLOCK_MS;
  const shortest = isFine ? LEVEL_SECONDS : Math.ceil((10 * stepMs) / 1000 / 10) * 10;
  const levelSeconds = Math.max(
    shortest,
    10 * Math.ceil((LEAST_IN_LEVEL * seconds) / arrivalSeconds.length / 10),
  );
  const counts = countsOf(arrivalSeconds, seconds, levelSeconds);
  const secondShape = isFine ? shapeOfSeconds(arrivalSeconds, seconds, levelSeconds) : null;
  return {
    /** Mean rate. */
    perSecond: round(arrivalSeconds.length / seconds),
    /** A level lasts this long, s. */
    levelSeconds,
    /** Rate of a level over the mean rate: values at evenly spaced probabilities, 0 and 1 among them. Their mean is 1. */
    levels: levelQuantiles(counts, levelSeconds, secondShape),
    /** Parts of a level's normal score that fade independently; the shares sum to 1. */
    memory: memoryOf(counts, {
      ...{ levelSeconds, slower: levelSeconds / shortest },
      signal: signalShare(counts, levelSeconds, secondShape),
    }),
    /** Shape of the gamma factor of each second, mean 1; `null` when the rate stays within a level. */
    secondShape,
  };
}

/** The smallest step of time that at least a hundredth of the gaps that are not zero have, ms. */
function clockStepMs(arrivalMs: Float64Array): number {
  const gaps: number[] = [];
  for (let i = 1; i < arrivalMs.length; i++) {
    const gap = arrivalMs[i] - arrivalMs[i - 1];
    if (gap > 0) gaps.push(gap);
  }
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length / 100)] ?? 0;
}

/**
 * The gamma factor of each second that explains how much more the seconds within a level vary than Poisson arrivals of
 * the level's rate would: for mean counts m, their variance exceeds m by m^2 / shape.
 */
function shapeOfSeconds(
  arrivalSeconds: readonly number[],
  seconds: number,
  levelSeconds: number,
): number | null {
  const perSecond = countsOf(arrivalSeconds, seconds, 1);
  let excess = 0;
  let squaredRate = 0;
  for (let start = 0; start + levelSeconds <= perSecond.length; start += levelSeconds) {
    const level = perSecond.subarray(start, start + levelSeconds);
    const average = mean(level);
    if (average === 0) continue;
    const variance = dispersion(level) * average;
    excess += variance - average;
    // The mean of so few seconds is itself uncertain: its square overstates the square of the rate.
    squaredRate += Math.max(0, average ** 2 - variance / levelSeconds);
  }
  return excess <= 0 ? null : round(Math.max(0.02, squaredRate / excess));
}

/** Share of the variance of the counts that is the levels', not that of arrivals within a level. */
function signalShare(counts: Float64Array, levelSeconds: number, secondShape: number | null): number {
  const average = mean(counts);
  const within = average + (secondShape === null ? 0 : average ** 2 / (levelSeconds * secondShape));
  const variance = dispersion(counts) * average;
  return Math.min(1, Math.max(0.05, 1 - within / variance));
}

/**
 * Quantiles of the levels: those of the counts, raised to the power that takes away what arrivals within a level add to
 * their spread, so that a level without arrivals stays one.
 */
function levelQuantiles(counts: Float64Array, levelSeconds: number, secondShape: number | null): number[] {
  const average = mean(counts);
  const power = Math.sqrt(signalShare(counts, levelSeconds, secondShape));
  const sorted = Array.from(counts).sort((a, b) => a - b);
  const levels = Array.from(
    { length: LEVELS + 1 },
    (_, i) => (evenQuantile(sorted, i / LEVELS) / average) ** power,
  );
  // Draws are linear between the quantiles: their mean is that of the trapezes.
  const drawn = levels.slice(1).reduce((sum, level, i) => sum + (level + levels[i]) / 2, 0) / LEVELS;
  return levels.map((level) => round(level / drawn));
}

/**
 * Two parts, a fast and a slow one, whose autocorrelation comes nearest to that of the counts. Both last `slower` times as
 * long where levels do.
 */
function memoryOf(
  counts: Float64Array,
  {
    levelSeconds,
    slower,
    signal,
  }: { readonly levelSeconds: number; readonly slower: number; readonly signal: number },
) {
  const lags = Math.min(LAGS, counts.length >> 2);
  const observed = autocorrelation(normalScores(counts), lags).map((value) => value / signal);
  let best = { error: Number.POSITIVE_INFINITY, share: 0, fast: FAST_S[0], slow: SLOW_S[0] };
  for (const fast of FAST_S.map((seconds) => slower * seconds)) {
    for (const slow of SLOW_S.map((seconds) => slower * seconds)) {
      for (let share = 0; share <= 1; share += 0.05) {
        let error = 0;
        for (let lag = 1; lag <= lags; lag++) {
          const at = -lag * levelSeconds;
          const expected = share * portableMath.exp(at / fast) + (1 - share) * portableMath.exp(at / slow);
          error += (expected - observed[lag - 1]) ** 2;
        }
        if (error < best.error) best = { error, share, fast, slow };
      }
    }
  }
  return [
    { share: round(best.share), seconds: best.fast },
    { share: round(1 - best.share), seconds: best.slow },
  ].filter(({ share }) => share > 0);
}

/** At lags from 1. */
function autocorrelation(scores: Float64Array, lags: number): number[] {
  let own = 0;
  for (const score of scores) own += score ** 2;
  return Array.from({ length: lags }, (_, i) => {
    const lag = i + 1;
    let sum = 0;
    for (let at = lag; at < scores.length; at++) sum += scores[at] * scores[at - lag];
    return own === 0 ? 0 : sum / own;
  });
}

/** Arrivals in each whole stretch of `scale` seconds. */
export function countsOf(arrivalSeconds: readonly number[], seconds: number, scale: number): Float64Array {
  const counts = new Float64Array(Math.floor(seconds / scale));
  for (const at of arrivalSeconds) {
    const stretch = Math.floor(at / scale);
    if (stretch < counts.length) counts[stretch]++;
  }
  return counts;
}

/** Variance over mean. */
export function dispersion(counts: Float64Array): number {
  const average = mean(counts);
  let squares = 0;
  for (const count of counts) squares += (count - average) ** 2;
  return squares / (counts.length - 1) / average;
}
