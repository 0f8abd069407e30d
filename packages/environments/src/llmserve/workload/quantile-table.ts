/** The value at probability `p` of quantiles tabled at evenly spaced probabilities from 0 to 1, linear between. */
export function evenQuantile(quantiles: readonly number[], p: number): number {
  const at = Math.min(1, Math.max(0, p)) * (quantiles.length - 1);
  const below = Math.min(quantiles.length - 2, Math.floor(at));
  return quantiles[below] + (at - below) * (quantiles[below + 1] - quantiles[below]);
}

/** The value at probability `p` of positive quantiles tabled at `probabilities`, linear in the logarithm between. */
export function logQuantile(
  probabilities: readonly number[],
  quantiles: readonly number[],
  p: number,
): number {
  let low = 0;
  let high = probabilities.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (probabilities[middle] <= p) low = middle;
    else high = middle;
  }
  const share = (p - probabilities[low]) / (probabilities[high] - probabilities[low]);
  return quantiles[low] * (quantiles[high] / quantiles[low]) ** Math.min(1, Math.max(0, share));
}
