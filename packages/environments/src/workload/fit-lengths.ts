import type { Trace } from '@servegym/simulator';
import { normalScore, quantile } from '@servegym/simulator/statistics';

/** Probabilities of the tabled quantiles: each fortieth, and closer towards the ends. */
const PROBABILITIES = [
  0,
  0.002,
  0.005,
  0.01,
  ...Array.from({ length: 39 }, (_, i) => (i + 1) / 40),
  0.99,
  0.995,
  0.998,
  1,
];

/** Quantiles of both lengths, and how they go together. */
export function fitLengths(input: Int32Array, output: Int32Array) {
  return {
    /** Probabilities of the quantiles below, ascending from 0 to 1. */
    probabilities: PROBABILITIES,
    /** Tokens. */
    input: quantilesOf(input),
    output: quantilesOf(output),
    /** Of the normal scores of input and output. */
    correlation: round(scoreCorrelation(input, output)),
  };
}

function quantilesOf(lengths: Int32Array): number[] {
  const sorted = lengths.slice().sort();
  return PROBABILITIES.map((p) => round(quantile(sorted, p)));
}

/** Correlation of normal scores: those of the ranks, with the mean rank for equal values. */
function scoreCorrelation(a: Int32Array, b: Int32Array): number {
  const left = normalScores(a);
  const right = normalScores(b);
  let both = 0;
  let own = 0;
  let other = 0;
  for (let i = 0; i < left.length; i++) {
    both += left[i] * right[i];
    own += left[i] ** 2;
    other += right[i] ** 2;
  }
  return own * other === 0 ? 0 : both / Math.sqrt(own * other);
}

/** For each value the normal score of its rank. */
export function normalScores(values: ArrayLike<number>): Float64Array {
  const order = Array.from(values, (_, i) => i).sort((a, b) => values[a] - values[b]);
  const scores = new Float64Array(values.length);
  for (let first = 0; first < order.length; ) {
    let next = first;
    while (next < order.length && values[order[next]] === values[order[first]]) next++;
    const score = normalScore((first + next) / 2 / order.length);
    for (; first < next; first++) scores[order[first]] = score;
  }
  return scores;
}

/** Four digits: more than a fit deserves. */
export function round(value: number): number {
  return Number(value.toPrecision(4));
}

/** Quantiles of what is shared and after how long, less 1. */
const QUANTILES = 20;
/** Share of the prompts that must begin with a block for it to count as common to all. */
const COMMON = 0.9;
/** Groups of equally many prompts, by their length. */
const LENGTH_GROUPS = 8;

/** Prefixes that prompts share with earlier ones; `null` when the trace has no block hashes. */
export function fitPrefixes(trace: Trace) {
  if (trace.prefixBlocks === undefined) return null;
  const { blockTokens, ids, offsets } = trace.prefixBlocks;
  const requests = trace.arrivalMs.length;
  const commonBlocks = commonPrefix(trace.prefixBlocks, requests);
  const lastSeen = new Map<number, number>();
  const shares: number[] = [];
  const gaps: number[] = [];
  const continues = new Uint8Array(requests);
  let cacheable = 0;
  let total = 0;
  for (let i = 0; i < requests; i++) {
    const start = offsets[i];
    let shared = 0;
    let previous = 0;
    while (start + shared < offsets[i + 1]) {
      const seen = lastSeen.get(ids[start + shared]);
      if (seen === undefined) break;
      previous = seen;
      shared++;
    }
    total += trace.inputTokens[i];
    cacheable += Math.min(trace.inputTokens[i], shared * blockTokens);
    if (shared > commonBlocks) {
      continues[i] = 1;
      shares.push(Math.min(1, (shared * blockTokens) / trace.inputTokens[i]));
      gaps.push((trace.arrivalMs[i] - previous) / 1000);
    }
    for (let at = start; at < offsets[i + 1]; at++) lastSeen.set(ids[at], trace.arrivalMs[i]);
  }
  return {
    /** Tokens in a block of the trace. */
    blockTokens,
    /**
     * Share of the requests that continue an earlier prompt beyond what all have in common, by the length of their own:
     * each entry holds for prompts longer than the one before it says, up to `upToTokens`.
     */
    continued: byLength(trace.inputTokens, continues),
    /** Tokens that every prompt begins with. */
    commonTokens: commonBlocks * blockTokens,
    /** Of those that continue: shared tokens over the prompt's, at evenly spaced probabilities from 0 to 1. */
    sharedShare: evenQuantiles(shares),
    /** Of those that continue: seconds since the prompt that is continued, at evenly spaced probabilities. */
    gapSeconds: evenQuantiles(gaps),
    /** Share of all prompt tokens that an unbounded prefix cache would have held. */
    cacheableShare: round(cacheable / total),
  };
}

function byLength(inputTokens: Int32Array, continues: Uint8Array) {
  const order = Array.from(inputTokens, (_, i) => i).sort((a, b) => inputTokens[a] - inputTokens[b]);
  return Array.from({ length: LENGTH_GROUPS }, (_, g) => {
    const group = order.slice(
      Math.round((g * order.length) / LENGTH_GROUPS),
      Math.round(((g + 1) * order.length) / LENGTH_GROUPS),
    );
    const share = group.reduce((sum, i) => sum + continues[i], 0) / group.length;
    return { upToTokens: inputTokens[group[group.length - 1]], share: round(share) };
  });
}

/** Blocks that nearly every prompt begins with. */
function commonPrefix({ ids, offsets }: NonNullable<Trace['prefixBlocks']>, requests: number): number {
  for (let block = 0; ; block++) {
    const counts = new Map<number, number>();
    let most = 0;
    for (let i = 0; i < requests; i++) {
      if (offsets[i] + block >= offsets[i + 1]) continue;
      const id = ids[offsets[i] + block];
      const count = (counts.get(id) ?? 0) + 1;
      counts.set(id, count);
      most = Math.max(most, count);
    }
    if (most < COMMON * requests) return block;
  }
}

function evenQuantiles(values: number[]): number[] {
  if (values.length === 0) return [0, 0];
  const sorted = values.sort((a, b) => a - b);
  return Array.from({ length: QUANTILES + 1 }, (_, i) =>
    round(sorted[Math.round((i / QUANTILES) * (sorted.length - 1))]),
  );
}
