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
  for (let i = cut; i < sorted.length - cut; i++) sum += sorted[i]!;
  return sum / (sorted.length - 2 * cut);
}
