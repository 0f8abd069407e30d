import { mean } from '@servegym/simulator/statistics';

/** Arrivals in each whole stretch of `scale` seconds. */
export function countsOf(arrivalSeconds: readonly number[], seconds: number, scale: number): Float64Array {
  const counts = new Float64Array(Math.floor(seconds / scale));
  for (const at of arrivalSeconds) {
    const stretch = Math.floor(at / scale);
    if (stretch < counts.length) counts[stretch]++;
  }
  return counts;
}

/** Variance over mean. */
export function dispersion(counts: Float64Array): number {
  const average = mean(counts);
  let squares = 0;
  for (const count of counts) squares += (count - average) ** 2;
  return squares / (counts.length - 1) / average;
}
