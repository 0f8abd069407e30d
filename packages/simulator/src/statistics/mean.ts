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
