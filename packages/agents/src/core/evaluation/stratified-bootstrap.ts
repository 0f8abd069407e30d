import { RandomStream } from '@servegym/simulator';
import { quantile } from './quantile.ts';

/** How an interval is estimated. */
export interface BootstrapOptions {
  /** Default 0.95. */
  readonly confidence?: number;
  /** Resamples drawn. Default 5,000. */
  readonly resamples?: number;
  /** Seed of the resampling; the same seed gives the same interval. Default 0. */
  readonly seed?: number;
}

/** Lower and upper end of a confidence interval. */
export type Interval = readonly [low: number, high: number];

/**
 * Percentile interval of a statistic, by the stratified bootstrap: every resample draws, with replacement, as many
 * values from each stratum (a task, say) as it has. `statistic` gets all of them in one array, which it must not keep.
 * Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 13 and 16.
 */
export function stratifiedBootstrap(
  strata: readonly (readonly number[])[],
  statistic: (values: Float64Array) => number,
  { confidence = 0.95, resamples = 5_000, seed = 0 }: BootstrapOptions = {},
): Interval {
  if (strata.length === 0 || strata.some((stratum) => stratum.length === 0)) {
    throw new RangeError('Expected at least one stratum and at least one value in each');
  }
  const random = new RandomStream(seed, 'bootstrap');
  const drawn = new Float64Array(strata.reduce((total, stratum) => total + stratum.length, 0));
  const estimates = new Float64Array(resamples);
  for (let resample = 0; resample < resamples; resample++) {
    let filled = 0;
    for (const stratum of strata) {
      for (let i = 0; i < stratum.length; i++) {
        drawn[filled++] = stratum[Math.floor(random.uniform() * stratum.length)]!;
      }
    }
    estimates[resample] = statistic(drawn);
  }
  estimates.sort();
  const tail = (1 - confidence) / 2;
  return [quantile(estimates, tail), quantile(estimates, 1 - tail)];
}
