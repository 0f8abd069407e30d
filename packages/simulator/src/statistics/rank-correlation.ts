/** Spearman's rank correlation of `a` and `b`; equal values share the mean of their ranks. `NaN` where all are equal on a side. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const [ranksA, ranksB] = [ranks(a), ranks(b)];
  const mean = (a.length - 1) / 2;
  const product = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, rank, i) => sum + (rank - mean) * (y[i] - mean), 0);
  return product(ranksA, ranksB) / Math.sqrt(product(ranksA, ranksA) * product(ranksB, ranksB));
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
