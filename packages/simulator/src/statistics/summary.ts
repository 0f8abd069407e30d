/** Arithmetic mean, summed in order; `NaN` when there are no values. */
export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum / values.length;
}

/** Mean square distance from the mean, of the values as a whole population. */
export function variance(values: ArrayLike<number>): number {
  return sumOfSquares(values) / values.length;
}

/** Square root of the variance that a sample estimates; `NaN` below two values. */
export function sampleDeviation(values: ArrayLike<number>): number {
  return values.length < 2 ? Number.NaN : Math.sqrt(sumOfSquares(values) / (values.length - 1));
}

function sumOfSquares(values: ArrayLike<number>): number {
  const center = mean(values);
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i] - center) ** 2;
  return squares;
}

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

/** Mean and percentiles of a set of measurements. All are `NaN` for an empty set, which JSON writes as `null`. */
export interface Summary {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/**
 * Mean and percentiles of `values`, which need no order and are left as they are.
 *
 * A percentile interpolates linearly between the two nearest ranks: percentile q of n sorted values lies at position
 * `(n - 1) * q / 100`, counted from 0. This is numpy's default, and what vLLM's own benchmark prints.
 */
export function summarize(values: Float64Array): Summary {
  const sorted = values.slice().sort();
  return {
    mean: mean(values),
    p50: percentileOfSorted(sorted, 50),
    p90: percentileOfSorted(sorted, 90),
    p99: percentileOfSorted(sorted, 99),
  };
}
