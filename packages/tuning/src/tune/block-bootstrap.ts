import { RandomStream } from '@servegym/simulator';

/** A 95 % interval. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 1000;

/** How often each block counts in each resample: blocks drawn with replacement, the same for whoever asks. */
export function blockResamples(blocks: number, seed: number): Uint16Array[] {
  const random = new RandomStream(seed, 'blocks');
  return Array.from({ length: RESAMPLES }, () => {
    const weights = new Uint16Array(blocks);
    for (let draw = 0; draw < blocks; draw += 1) weights[Math.floor(blocks * random.uniform())]! += 1;
    return weights;
  });
}

/** The middle 95 % of the values of resamples. */
export function percentileInterval(values: readonly number[]): Interval {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  return { low: at(0.025), high: at(0.975) };
}
