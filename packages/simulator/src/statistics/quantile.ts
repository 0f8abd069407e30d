/**
 * The `p` quantile of ascending values, linear between neighbours (the default of NumPy and R, Hyndman and Fan's
 * type 7). Throws a `RangeError` when there are no values.
 */
export function quantile(ascending: ArrayLike<number>, p: number): number {
  if (ascending.length === 0) throw new RangeError('Expected at least one value to take a quantile of');
  return between(ascending, p * (ascending.length - 1));
}

/** Percentile `q` (0..100) of ascending values, linear between neighbours. `NaN` when there are none. */
export function percentileOfSorted(ascending: ArrayLike<number>, q: number): number {
  return ascending.length === 0 ? Number.NaN : between(ascending, ((ascending.length - 1) * q) / 100);
}

/** Value at a position, counted from 0, that may lie between two values. */
function between(ascending: ArrayLike<number>, position: number): number {
  const below = Math.floor(position);
  const low = ascending[below];
  const high = ascending[below + 1] ?? low;
  return low + (position - below) * (high - low);
}

/**
 * Mean of the middle half: a quarter of the values (rounded down) is left out at either end. Less swayed by outliers
 * than the mean, less wasteful than the median. Agarwal et al., "Deep Reinforcement Learning at the Edge of the
 * Statistical Precipice", NeurIPS 2021. Throws a `RangeError` when there are no values.
 */
export function interquartileMean(values: ArrayLike<number>): number {
  if (values.length === 0)
    throw new RangeError('Expected at least one value to take the interquartile mean of');
  const sorted = Float64Array.from(values).sort();
  const cut = Math.floor(sorted.length / 4);
  let sum = 0;
  for (let i = cut; i < sorted.length - cut; i++) sum += sorted[i];
  return sum / (sorted.length - 2 * cut);
}
