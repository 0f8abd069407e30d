/** How a figure becomes a number of about the size 0 to 1: itself or log(1 + itself), over `divisor`. */
export interface ObservationScale {
  readonly transform: 'linear' | 'log1p';
  readonly divisor: number;
}

/** A figure with a heavy tail: 1 at `typicalMost`. */
const heavy = (typicalMost: number): ObservationScale => ({
  transform: 'log1p',
  divisor: Number(Math.log1p(typicalMost).toPrecision(4)),
});
const linear = (typicalMost: number): ObservationScale => ({ transform: 'linear', divisor: typicalMost });

/**
 * The scale of each figure, the same for all tasks, so that a normaliser needs no statistics and weights learned on
 * one task fit another. Shares stay as they are; counts, lengths, latencies and rates go by their logarithm. `GET /schema`
 * has them beside each field, as `normalization`.
 */
export const OBSERVATION_SCALES = {
  queue_depth: heavy(1000),
  active_requests: heavy(1000),
  kv_cache_occupancy: linear(1),
  mean_prompt_length: heavy(8192),
  p50_ttft_ms: heavy(60_000),
  p99_ttft_ms: heavy(60_000),
  p50_itl_ms: heavy(200),
  throughput_tps: heavy(10_000),
  slo_compliance_rate: linear(1),
  gpu_memory_used_gb: linear(80),
  estimated_cost_per_1k: linear(0.01),
  request_arrival_rate: heavy(100),
  spec_acceptance_rate: linear(1),
  eviction_events: heavy(1000),
} as const satisfies Readonly<Record<string, ObservationScale>>;

/** Fields of the observation that are numbers about the server. */
export type ObservedFigure = keyof typeof OBSERVATION_SCALES;

/** The figures in the order in which `normalizeObservation` writes them. */
export const OBSERVED_FIGURES = Object.keys(OBSERVATION_SCALES) as readonly ObservedFigure[];

/** An observation as numbers for a learner, in the order of `OBSERVED_FIGURES`. They may exceed 1 and are never negative. */
export function normalizeObservation(
  observation: Readonly<Record<ObservedFigure, number>>,
  into: Float32Array = new Float32Array(OBSERVED_FIGURES.length),
): Float32Array {
  for (let i = 0; i < OBSERVED_FIGURES.length; i++) {
    const figure = OBSERVED_FIGURES[i];
    const { transform, divisor } = OBSERVATION_SCALES[figure];
    const value = observation[figure];
    into[i] = (transform === 'log1p' ? Math.log1p(value) : value) / divisor;
  }
  return into;
}
