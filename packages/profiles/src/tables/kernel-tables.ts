/** Measured times of one kernel by the number of tokens or sequences it works on, ascending. */
export type KernelTimes = readonly { readonly size: number; readonly us: number }[];

/** Time of a kernel at a size between those measured, linear between them and beyond. */
export function timeAt(times: KernelTimes, size: number): number {
  const after = times.findIndex((point) => point.size >= size);
  if (after === 0 || times.length === 1) return times[0].us;
  const high = times[after === -1 ? times.length - 1 : after];
  const low = times[after === -1 ? times.length - 2 : after - 1];
  return low.us + ((high.us - low.us) * (size - low.size)) / (high.size - low.size);
}
