import { z } from 'zod';
import { OBSERVATION_SCALES } from './observation-scales.ts';

/** Ids of the three tasks, easiest first. */
export const TASK_IDS = ['static_workload', 'bursty_workload', 'adversarial_multitenant'] as const;
export type TaskId = (typeof TASK_IDS)[number];

/** Precision of the weights. */
export const QUANTIZATION_TIERS = ['FP16', 'INT8', 'INT4'] as const;
export type QuantizationTier = (typeof QUANTIZATION_TIERS)[number];

/** Clients that number the tiers send their index. */
function tierOfIndex(value: unknown): unknown {
  return typeof value === 'number' && Object.hasOwn(QUANTIZATION_TIERS, value)
    ? QUANTIZATION_TIERS[value]
    : value;
}

/** The serving configuration for the next window. */
export const serveActionSchema = z
  .strictObject({
    batch_cap: z
      .int()
      .min(1)
      .max(512)
      .meta({ description: 'Most sequences that run at once on each GPU (vLLM max_num_seqs)' }),
    kv_budget_fraction: z.number().min(0.1).max(1).meta({
      description:
        'Share of the memory left by weights, draft and activations that the KV pool of each GPU takes',
    }),
    speculation_depth: z
      .int()
      .min(0)
      .max(8)
      .meta({ description: 'Draft tokens proposed a decode step; 0 is off' }),
    quantization_tier: z
      .preprocess(tierOfIndex, z.enum(QUANTIZATION_TIERS))
      .meta({ description: 'Precision of the weights; 0, 1 and 2 stand for them in this order' }),
    prefill_decode_split: z
      .boolean()
      .meta({ description: 'One GPU prefills and the other decodes, instead of both doing both' }),
    priority_routing: z
      .boolean()
      .meta({ description: 'Interactive requests are scheduled first and preempted last' }),
  })
  .meta({ title: 'ServeAction', description: 'The serving configuration for the next window' });

export type ServeAction = z.infer<typeof serveActionSchema>;

/** Name of a knob: a field of the action. */
export type ServeKnob = keyof ServeAction;
export const SERVE_KNOBS = Object.keys(serveActionSchema.shape) as readonly ServeKnob[];

/** What a sane operator starts with, and what `reset` applies before the first action. */
export const DEFAULT_ACTION: ServeAction = {
  batch_cap: 32,
  kv_budget_fraction: 1,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
};

const count = z.int().min(0);
const amount = z.number().min(0);
const fraction = z.number().min(0).max(1);

/** What the agent sees after each window. Latencies in ms, memory in GB (10^9 bytes), cost in USD. */
export const serveObservationSchema = z
  .object({
    queue_depth: count.meta({
      description: 'Requests waiting at the end of the window',
      normalization: OBSERVATION_SCALES.queue_depth,
    }),
    active_requests: count.meta({
      description: 'Requests running at the end of the window',
      normalization: OBSERVATION_SCALES.active_requests,
    }),
    kv_cache_occupancy: fraction.meta({
      description: 'Allocated share of the KV blocks at the end of the window',
      normalization: OBSERVATION_SCALES.kv_cache_occupancy,
    }),
    mean_prompt_length: amount.meta({
      description: 'Mean prompt of the requests that arrived, tokens',
      normalization: OBSERVATION_SCALES.mean_prompt_length,
    }),
    p50_ttft_ms: amount.meta({
      description: 'Median time to first token of the window, ms',
      normalization: OBSERVATION_SCALES.p50_ttft_ms,
    }),
    p99_ttft_ms: amount.meta({
      description: '99th percentile of the time to first token, ms',
      normalization: OBSERVATION_SCALES.p99_ttft_ms,
    }),
    p50_itl_ms: amount.meta({
      description: 'Median inter-token latency, ms',
      normalization: OBSERVATION_SCALES.p50_itl_ms,
    }),
    throughput_tps: amount.meta({
      description: 'Output tokens a second',
      normalization: OBSERVATION_SCALES.throughput_tps,
    }),
    slo_compliance_rate: fraction.meta({
      description: 'Share of the window’s requests inside their SLO',
      normalization: OBSERVATION_SCALES.slo_compliance_rate,
    }),
    gpu_memory_used_gb: amount.meta({
      description: 'Weights, draft, activations, KV pool and co-tenants, GB a GPU',
      normalization: OBSERVATION_SCALES.gpu_memory_used_gb,
    }),
    estimated_cost_per_1k: amount.meta({
      description: 'Cost of 1,000 output tokens, USD',
      normalization: OBSERVATION_SCALES.estimated_cost_per_1k,
    }),
    request_arrival_rate: amount.meta({
      description: 'Arrivals a second over the window',
      normalization: OBSERVATION_SCALES.request_arrival_rate,
    }),
    spec_acceptance_rate: fraction.meta({
      description: 'Accepted share of the draft tokens; 0 with speculation off',
      normalization: OBSERVATION_SCALES.spec_acceptance_rate,
    }),
    eviction_events: count.meta({
      description: 'Preemptions in the window',
      normalization: OBSERVATION_SCALES.eviction_events,
    }),
    step_index: count.meta({ description: 'Windows played so far' }),
    task_id: z.string(),
  })
  .meta({ title: 'ServeObservation', description: 'The server as seen over the last window' });

export type ServeObservation = z.infer<typeof serveObservationSchema>;

/** Totals of the episode so far. */
export const serveStateSchema = z
  .object({
    task_id: z.string(),
    traffic: z.string().nullable().meta({ description: 'Workload that the requests come from' }),
    trace: z.string().nullable().meta({ description: 'Trace that they come from, with its digest' }),
    shift: z.string().nullable(),
    rate_scale: z.number(),
    profile: z.string().meta({ description: "Engine profile of each GPU's server" }),
    seed: count,
    total_requests_served: count,
    total_slo_violations: count.meta({
      description:
        'Requests that were finished or refused outside their SLO, or wait too long for their first token already',
    }),
    cumulative_reward: z.number(),
    elapsed_simulated_time_s: amount,
    workload_phase: z.string(),
    done: z.boolean(),
  })
  .meta({ title: 'ServeState' });

export type ServeState = z.infer<typeof serveStateSchema>;
