/**
 * The `p` quantile of ascending values, linear between neighbours (the default of NumPy and R, Hyndman and Fan's
 * type 7). Throws a `RangeError` when there are no values.
 */
export function quantile(ascending: ArrayLike<number>, p: number): number {
  if (ascending.length === 0) throw new RangeError('Expected at least one value to take a quantile of');
  const position = p * (ascending.length - 1);
  const below = Math.floor(position);
  const low = ascending[below]!;
  const high = ascending[Math.min(below + 1, ascending.length - 1)]!;
  return low + (position - below) * (high - low);
}
