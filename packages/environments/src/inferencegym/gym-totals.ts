/** Measurements of a step (`MetricsSnapshot` of InferenceGym); values before the first. */
export function noMetrics() {
  return {
    ttft_p50_ms: 0,
    ttft_p99_ms: 0,
    tpot_ms: 0,
    tokens_per_sec: 0,
    gpu_memory_gb: 0,
    /** US cents. */
    cost_per_1k: 0,
    spec_accept_rate: 0,
    eviction_events: 0,
    slo_violations: 0,
  };
}
export type StepMetrics = ReturnType<typeof noMetrics>;

/** Sums over the episode, which its grade is made of; values before the first step. */
export function noTotals() {
  return {
    reward: 0,
    arrived: 0,
    /** Turned away by a full queue. */
    rejected: 0,
    /** Lost with a server that ran out of memory. */
    failed: 0,
    served: 0,
    outputTokens: 0,
    /** Sum over the steps of the median time to first token, each at most 5,000 ms. */
    ttftMs: 0,
    /** Sum over the steps of the violated share. */
    violationRate: 0,
    peakMemoryGb: 0,
    /** US cents. */
    cost: 0,
    /** Steps without full service: out of memory, or starting. */
    outageSteps: 0,
    oomEvents: 0,
    batchChange: noChange(),
    kvChange: noChange(),
  };
}
export type GymTotals = ReturnType<typeof noTotals>;

/** Moments of the differences between neighbouring actions. */
const noChange = () => ({ count: 0, sum: 0, squares: 0 });
export type ChangeMoments = ReturnType<typeof noChange>;

/** Counts a difference in. */
export function noteChange(moments: ChangeMoments, change: number): void {
  moments.count++;
  moments.sum += change;
  moments.squares += change * change;
}
