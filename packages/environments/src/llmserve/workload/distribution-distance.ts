/** Kolmogorov-Smirnov's distance: the largest gap between two empirical distribution functions. */
export function distributionDistance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const left = Float64Array.from(a).sort();
  const right = Float64Array.from(b).sort();
  let distance = 0;
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const value = Math.min(left[i], right[j]);
    while (i < left.length && left[i] === value) i++;
    while (j < right.length && right[j] === value) j++;
    distance = Math.max(distance, Math.abs(i / left.length - j / right.length));
  }
  return distance;
}
