import { RandomStream } from '../random/counter-random.ts';
import { quantile } from './summary.ts';

/** Size, confidence and seed of a bootstrap. */
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
        drawn[filled++] = stratum[Math.floor(random.uniform() * stratum.length)];
      }
    }
    estimates[resample] = statistic(drawn);
  }
  estimates.sort();
  const tail = (1 - confidence) / 2;
  return [quantile(estimates, tail), quantile(estimates, 1 - tail)];
}

const BLOCK_RESAMPLES = 1000;

/** A 95 % interval. */
export interface IntervalEnds {
  readonly low: number;
  readonly high: number;
}

/** Count of each block in each resample: blocks drawn with replacement, the same for the same seed. */
export function blockResamples(blocks: number, seed: number): Uint16Array[] {
  const random = new RandomStream(seed, 'blocks');
  return Array.from({ length: BLOCK_RESAMPLES }, () => {
    const weights = new Uint16Array(blocks);
    for (let draw = 0; draw < blocks; draw += 1) weights[Math.floor(blocks * random.uniform())] += 1;
    return weights;
  });
}

/** The middle 95 % of the values of resamples. */
export function percentileInterval(values: readonly number[]): IntervalEnds {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { low: at(0.025), high: at(0.975) };
}
