/** How many times to first token an observation is the median of. */
export const REMEMBERED_LATENCIES = 20;

/** The last 20 times to first token, ms. */
export class RecentLatencies {
  private count = 0;
  private next = 0;
  private readonly values = new Float64Array(REMEMBERED_LATENCIES);
  private readonly sorted = new Float64Array(REMEMBERED_LATENCIES);

  push(ms: number): void {
    const { next } = this;
    this.values[next] = ms;
    this.next = next + 1 === REMEMBERED_LATENCIES ? 0 : next + 1;
    if (this.count < REMEMBERED_LATENCIES) this.count++;
  }

  /** 0 when there are none. */
  median(): number {
    const { count, values, sorted } = this;
    if (count === 0) return 0;
    for (let i = 0; i < count; i++) {
      const value = values[i];
      let at = i;
      for (; at > 0 && sorted[at - 1] > value; at--) sorted[at] = sorted[at - 1];
      sorted[at] = value;
    }
    const middle = count >> 1;
    return count % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
