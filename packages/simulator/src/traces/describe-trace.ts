import { counted } from '../reporting/counted.ts';
import { correlation } from '../statistics/correlation.ts';
import { mean, percentileOfSorted, variance } from '../statistics/summary.ts';
import type { Trace } from './trace.ts';

/** Distribution of the lengths of prompts or outputs, tokens. */
export type LengthSummary = Readonly<ReturnType<typeof summarizeLengths>>;

/** Summary of a trace. */
export type TraceDescription = Readonly<ReturnType<typeof describeTrace>>;

const WINDOWS_S = [1, 10, 60, 600];
const PARTS = 60;

/** Looks at the rates, the bursts and the lengths of a trace. */
export function describeTrace(trace: Trace) {
  const { arrivalMs, inputTokens, outputTokens } = trace;
  const requests = arrivalMs.length;
  const durationS = arrivalMs[requests - 1] / 1000;
  const input = summarizeLengths(inputTokens);
  const output = summarizeLengths(outputTokens);
  const { together, ...gaps } = gapStatistics(arrivalMs);
  /** Mean requests/s. NaN when all arrive at once. */
  const requestsPerS = durationS === 0 ? Number.NaN : (requests - 1) / durationS;
  /** Requests/s over equal parts of the trace. */
  const requestsPerSOverTime = rateOverTime(arrivalMs, durationS);
  return {
    requests,
    /** From the first arrival to the last, s. */
    durationS,
    requestsPerS,
    inputTokensPerS: input.total / durationS,
    outputTokensPerS: output.total / durationS,
    ...gaps,
    windows: WINDOWS_S.filter((windowS) => durationS >= 2 * windowS).map((windowS) =>
      countWindows(arrivalMs, windowS),
    ),
    inputTokens: input,
    outputTokens: output,
    /** Correlation of prompt and output lengths. NaN when either never changes. */
    lengthCorrelation: correlation(inputTokens, outputTokens),
    /** Share of the prompt tokens that stand in a prefix block seen before; `null` without prefix hashes. */
    sharedPrefix: sharedPrefix(trace),
    requestsPerSOverTime,
    /** Warnings about the trace, in sentences. */
    odd: oddities(trace, { durationS, rate: requestsPerS, together, ...gaps }, requestsPerSOverTime),
  };
}

function summarizeLengths(tokens: Int32Array) {
  const sorted = Float64Array.from(tokens).sort();
  const at = (q: number) => percentileOfSorted(sorted, q);
  return {
    mean: mean(sorted),
    p10: at(10),
    p50: at(50),
    p90: at(90),
    p99: at(99),
    max: sorted[sorted.length - 1],
    total: sum(sorted),
  };
}

function gapStatistics(arrivalMs: Float64Array) {
  const gaps = Float64Array.from({ length: arrivalMs.length - 1 }, (_, i) => arrivalMs[i + 1] - arrivalMs[i]);
  let longest = 0;
  let together = 0;
  for (const gap of gaps) {
    longest = Math.max(longest, gap);
    if (gap === 0) together += 1;
  }
  return {
    /** Standard deviation of the gaps between arrivals over their mean; 1 for a Poisson process. */
    gapVariation: Math.sqrt(variance(gaps)) / mean(gaps),
    longestGapS: longest / 1000,
    together: together / gaps.length,
  };
}

/** Arrivals counted in windows of one length. */
function countWindows(arrivalMs: Float64Array, windowS: number) {
  const windows = Math.floor(arrivalMs[arrivalMs.length - 1] / (1000 * windowS));
  const counts = new Float64Array(windows);
  for (const ms of arrivalMs) {
    const window = Math.floor(ms / (1000 * windowS));
    if (window < windows) counts[window] += 1;
  }
  let peak = 0;
  for (const count of counts) peak = Math.max(peak, count);
  return {
    windowS,
    /** Requests/s in the busiest window. */
    peakRequestsPerS: peak / windowS,
    /** Variance of the counts over their mean; 1 for a Poisson process. NaN with fewer than 2 windows. */
    dispersion: variance(counts) / mean(counts),
  };
}

function sharedPrefix({ prefixBlocks, inputTokens }: Trace): number | null {
  if (prefixBlocks === undefined) return null;
  const { ids, offsets, blockTokens } = prefixBlocks;
  const seen = new Set<number>();
  let shared = 0;
  let total = 0;
  for (let i = 0; i < inputTokens.length; i += 1) {
    total += inputTokens[i];
    let isPrefix = true;
    for (let at = offsets[i]; at < offsets[i + 1]; at += 1) {
      const id = ids[at];
      if (!seen.has(id)) isPrefix = false;
      // The last block of a prompt may be half full.
      if (isPrefix)
        shared += Math.max(0, Math.min(blockTokens, inputTokens[i] - (at - offsets[i]) * blockTokens));
      seen.add(id);
    }
  }
  return shared / total;
}

function rateOverTime(arrivalMs: Float64Array, durationS: number): number[] {
  if (durationS === 0) return [];
  const counts = new Array<number>(PARTS).fill(0);
  for (const ms of arrivalMs) counts[Math.min(PARTS - 1, Math.floor((PARTS * ms) / (1000 * durationS)))] += 1;
  return counts.map((count) => (count * PARTS) / durationS);
}

function oddities(
  { inputTokens, outputTokens }: Trace,
  facts: Readonly<Record<'durationS' | 'rate' | 'together' | 'gapVariation' | 'longestGapS', number>>,
  rates: readonly number[],
): string[] {
  const { durationS, rate, together, gapVariation, longestGapS } = facts;
  const requests = inputTokens.length;
  const odd: string[] = [];
  const few = `only ${counted(requests, 'request')}`;
  if (requests < 1000) odd.push(`${few}: the 99th percentiles rest on ${Math.ceil(requests / 100)}`);
  if (durationS === 0) odd.push('all requests arrive at the same moment');
  else if (gapVariation < 0.05)
    odd.push('the arrivals are evenly spaced, as a load generator sends them, not people');
  if (durationS > 0 && together > 0.2) {
    odd.push(
      `${percent(together)} of the requests arrive together with the one before: the times are rounded, or they come in batches`,
    );
  }
  if (longestGapS * rate > 50 && longestGapS > 10) {
    odd.push(
      `nothing arrives for ${longestGapS.toFixed(0)} s at one point, where ${(longestGapS * rate).toFixed(0)} requests would be usual`,
    );
  }
  const half = rates.length / 2;
  const first = sum(rates.slice(0, half));
  const second = sum(rates.slice(half));
  const times = Math.max(first / second, second / first);
  if (first > 0 && second > 0 && times > 2) {
    const busier = second > first ? 'second' : 'first';
    odd.push(`the ${busier} half has ${times.toFixed(1)} times the requests of the other`);
  }
  for (const [name, tokens] of [
    ['prompts', inputTokens],
    ['outputs', outputTokens],
  ] as const) {
    const { length, share, isLongest } = mostCommon(tokens);
    const cut = isLongest ? ', the most there are: they were cut off there' : '';
    if (share === 1) odd.push(`all ${name} have ${length} tokens`);
    else if (share > 0.1) odd.push(`${percent(share)} of the ${name} have exactly ${length} tokens${cut}`);
  }
  return odd;
}

function mostCommon(tokens: Int32Array) {
  const counts = new Map<number, number>();
  let length = 0;
  let most = 0;
  for (const each of tokens) {
    const count = (counts.get(each) ?? 0) + 1;
    counts.set(each, count);
    if (count > most) {
      most = count;
      length = each;
    }
  }
  return { length, share: most / tokens.length, isLongest: tokens.every((each) => each <= length) };
}

function sum(values: readonly number[] | Float64Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}
