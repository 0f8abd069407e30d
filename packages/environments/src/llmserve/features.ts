import type { Feature } from '../feature.ts';

/** Weight of a new window in the slow averages: they remember about ten windows. */
const SLOW = 0.1;
/** And in the fast ones: about two, enough to smooth the noise of a window. */
const FAST = 0.4;

const ARRIVALS = { of: 'request_arrival_rate', transform: 'log1p' } as const;
/** A window without arrivals says nothing about the prompts. */
const PROMPTS = { of: 'mean_prompt_length', transform: 'log1p', missing: 0 } as const;

/**
 * A window as numbers of about the same size: its figures, heavy-tailed ones by their logarithm; the configuration in
 * force, without which the effect of a change cannot be told, and for how long its weights have been; and the traffic
 * smoothed, and compared to its slow average.
 */
export const WINDOW_FEATURES: readonly Feature[] = [
  { name: 'queue', of: 'queue_depth', transform: 'log1p' },
  { name: 'active', of: 'active_requests', transform: 'log1p' },
  { name: 'kv_occupancy', of: 'kv_cache_occupancy' },
  { name: 'prompts', ...PROMPTS, memory: 'filled', weight: SLOW },
  { name: 'ttft_p50', of: 'p50_ttft_ms', transform: 'log1p' },
  { name: 'ttft_p99', of: 'p99_ttft_ms', transform: 'log1p' },
  { name: 'itl_p50', of: 'p50_itl_ms', transform: 'log1p' },
  { name: 'throughput', of: 'throughput_tps', transform: 'log1p' },
  { name: 'compliance', of: 'slo_compliance_rate' },
  { name: 'memory', of: 'gpu_memory_used_gb', divisor: 10 },
  { name: 'cost', of: 'estimated_cost_per_1k', divisor: 0.001, transform: 'log1p' },
  { name: 'arrivals', ...ARRIVALS },
  { name: 'acceptance', of: 'spec_acceptance_rate' },
  { name: 'evictions', of: 'eviction_events', transform: 'log1p' },
  { name: 'batch_cap', of: 'action.batch_cap', transform: 'log2' },
  { name: 'kv_budget', of: 'action.kv_budget_fraction' },
  { name: 'depth', of: 'action.speculation_depth', divisor: 4 },
  { name: 'int8', of: 'action.quantization_tier', equals: 'INT8' },
  { name: 'int4', of: 'action.quantization_tier', equals: 'INT4' },
  { name: 'split', of: 'action.prefill_decode_split' },
  { name: 'priority', of: 'action.priority_routing' },
  { name: 'queue_per_cap', of: 'queue_depth', plus: 1, over: 'action.batch_cap', transform: 'log2' },
  { name: 'active_per_cap', of: 'active_requests', over: 'action.batch_cap' },
  { name: 'arrivals_departure', ...ARRIVALS, memory: 'departure', weight: SLOW },
  { name: 'prompts_departure', ...PROMPTS, memory: 'departure', weight: SLOW },
  { name: 'windows', of: 'step_index', transform: 'log1p' },
  { name: 'arrivals_fast', ...ARRIVALS, memory: 'average', weight: FAST },
  { name: 'prompts_fast', ...PROMPTS, memory: 'average', weight: FAST },
  { name: 'compliance_fast', of: 'slo_compliance_rate', memory: 'average', weight: FAST },
  { name: 'queue_change', of: 'queue_depth', transform: 'log1p', memory: 'change' },
  { name: 'weights_kept', of: 'action.quantization_tier', memory: 'kept' },
];

const server = (name: string, rest: Partial<Feature> = {}): Feature => ({
  name: `server_${name}`,
  of: `server.${name}`,
  ...rest,
});
const logarithm = { transform: 'log1p' } as const;
const freedom = (knob: string): Feature => ({ name: `free_${knob}`, of: `server.free.${knob}` });

/** The server that the windows are of: constant in an episode, for policies that run many servers. */
export const SERVER_FEATURES: readonly Feature[] = [
  server('decode_1_ms', logarithm),
  server('decode_64_ms', logarithm),
  server('decode_256_ms', logarithm),
  server('prefill_1k_ms', logarithm),
  server('prefill_8k_ms', logarithm),
  server('int8_decode_64_ms', logarithm),
  server('int4_decode_64_ms', logarithm),
  server('int8_quality'),
  server('int4_quality'),
  server('draft_ms', logarithm),
  server('draft_4_accepted'),
  server('gpu_memory_gb', logarithm),
  server('weights_gb', logarithm),
  server('kv_tokens', logarithm),
  server('kv_bytes_per_token', logarithm),
  server('reload_s', logarithm),
  server('usd_per_hour', logarithm),
  server('interactive_ttft_ms', logarithm),
  server('interactive_tpot_ms', logarithm),
  server('batch_ttft_ms', logarithm),
  server('batch_tpot_ms', logarithm),
  server('best_effort_ttft_ms', logarithm),
  server('best_effort_tpot_ms', logarithm),
  server('throughput_weight'),
  server('slo_weight'),
  server('memory_weight'),
  server('cost_weight'),
  server('reference_cost_per_1k', { divisor: 0.001, transform: 'log1p' }),
  freedom('batch_cap'),
  freedom('kv_budget_fraction'),
  freedom('speculation_depth'),
  freedom('quantization_tier'),
  freedom('prefill_decode_split'),
  freedom('priority_routing'),
];
