import { mean } from './mean.ts';
import { percentileOfSorted } from './quantile.ts';

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
  return summarizeInPlace(values.slice());
}

/** As `summarize`, for values that nobody needs any more: they are sorted where they are. */
export function summarizeInPlace(values: Float64Array): Summary {
  const average = mean(values);
  values.sort();
  return {
    mean: average,
    p50: percentileOfSorted(values, 50),
    p90: percentileOfSorted(values, 90),
    p99: percentileOfSorted(values, 99),
  };
}
