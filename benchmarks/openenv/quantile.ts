/** The value below which a share of the sorted values lies; NaN when there are none. */
export function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
}

/** The middle one of some values, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  return (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2;
}
