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

/** Those before the first step. */
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
