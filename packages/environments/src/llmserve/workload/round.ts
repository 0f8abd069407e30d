/** Four digits: more than a fit deserves. */
export function round(value: number): number {
  return Number(value.toPrecision(4));
}
