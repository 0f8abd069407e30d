/** Measurements of a step (`MetricsSnapshot` of InferenceGym). */
export interface StepMetrics {
  ttft_p50_ms: number;
  ttft_p99_ms: number;
  tpot_ms: number;
  tokens_per_sec: number;
  gpu_memory_gb: number;
  /** US cents. */
  cost_per_1k: number;
  spec_accept_rate: number;
  eviction_events: number;
  slo_violations: number;
}

/** Values before the first step. */
export function noMetrics(): StepMetrics {
  return {
    ttft_p50_ms: 0,
    ttft_p99_ms: 0,
    tpot_ms: 0,
    tokens_per_sec: 0,
    gpu_memory_gb: 0,
    cost_per_1k: 0,
    spec_accept_rate: 0,
    eviction_events: 0,
    slo_violations: 0,
  };
}

/** Sums over the episode, which its grade is made of. */
export interface GymTotals {
  reward: number;
  arrived: number;
  /** Turned away by a full queue. */
  rejected: number;
  /** Lost with a server that ran out of memory. */
  failed: number;
  served: number;
  outputTokens: number;
  /** Sum over the steps of the median time to first token, each at most 5,000 ms. */
  ttftMs: number;
  /** Sum over the steps of the violated share. */
  violationRate: number;
  peakMemoryGb: number;
  /** US cents. */
  cost: number;
  /** Steps without full service: out of memory, or starting. */
  outageSteps: number;
  oomEvents: number;
  batchChange: ChangeMoments;
  kvChange: ChangeMoments;
}

/** Of the differences between neighbouring actions. */
export interface ChangeMoments {
  count: number;
  sum: number;
  squares: number;
}

/** Values before the first step. */
export function noTotals(): GymTotals {
  return {
    reward: 0,
    arrived: 0,
    rejected: 0,
    failed: 0,
    served: 0,
    outputTokens: 0,
    ttftMs: 0,
    violationRate: 0,
    peakMemoryGb: 0,
    cost: 0,
    outageSteps: 0,
    oomEvents: 0,
    batchChange: { count: 0, sum: 0, squares: 0 },
    kvChange: { count: 0, sum: 0, squares: 0 },
  };
}

/** Counts a difference in. */
export function noteChange(moments: ChangeMoments, change: number): void {
  moments.count++;
  moments.sum += change;
  moments.squares += change * change;
}
