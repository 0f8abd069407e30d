import { normalScore, quantile } from '@servegym/simulator/statistics';
import type { FittedWorkload } from './fitted-workload.ts';

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
export function fitLengths(input: Int32Array, output: Int32Array): FittedWorkload['lengths'] {
  return {
    probabilities: PROBABILITIES,
    input: quantilesOf(input),
    output: quantilesOf(output),
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
