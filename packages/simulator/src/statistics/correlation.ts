import { mean, variance } from './summary.ts';

/** Spearman's rank correlation of `a` and `b`; equal values share the mean of their ranks. `NaN` where all are equal on a side. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  return correlation(ranks(a), ranks(b));
}

/** Pearson's correlation of `a` and `b`. `NaN` where all are equal on a side. */
export function correlation(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  let together = 0;
  for (let i = 0; i < a.length; i++) together += (a[i] - meanA) * (b[i] - meanB);
  return together / a.length / Math.sqrt(variance(a) * variance(b));
}

function ranks(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const found = new Array<number>(values.length);
  for (let from = 0, to = 0; from < order.length; from = to) {
    while (to < order.length && values[order[to]] === values[order[from]]) to++;
    for (let at = from; at < to; at++) found[order[at]] = (from + to - 1) / 2;
  }
  return found;
}
