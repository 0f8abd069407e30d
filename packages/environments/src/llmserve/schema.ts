import { z } from 'zod';
import {
  amount,
  count,
  type Feature,
  figure,
  fraction,
  heavy,
  linear,
  type ObservationScale,
} from '../feature.ts';
import features from './features.json' with { type: 'json' };

/**
 * A window as numbers of about the same size: its figures, heavy-tailed ones by their logarithm; the configuration in
 * force, without which the effect of a change cannot be told, and for how long its weights have been; and the traffic
 * smoothed, and compared to its slow average. Averages of weight 0.1 remember about ten windows, those of 0.4 about two.
 */
export const WINDOW_FEATURES = features.window as readonly Feature[];
/** The server that the windows are of: constant in an episode, for policies that run many servers. */
export const SERVER_FEATURES = features.server as readonly Feature[];

/** Ids of the three tasks, easiest first. */
export const TASK_IDS = ['static_workload', 'bursty_workload', 'adversarial_multitenant'] as const;
export type TaskId = (typeof TASK_IDS)[number];

/** Precision of the weights. */
export const QUANTIZATION_TIERS = ['FP16', 'INT8', 'INT4'] as const;
export type QuantizationTier = (typeof QUANTIZATION_TIERS)[number];

/**
 * The values of each knob that a learner chooses from, about evenly spaced on a logarithmic scale where a knob acts in
 * proportion. `GET /schema` has them beside each knob, as `bins`; those `bins_by` `ratio` are near by their logarithm.
 */
export const SERVE_ACTION_BINS = {
  batch_cap: [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
  kv_budget_fraction: [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1],
  speculation_depth: [0, 1, 2, 3, 4, 5, 6, 8],
  quantization_tier: QUANTIZATION_TIERS,
  prefill_decode_split: [false, true],
  priority_routing: [false, true],
} as const;

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
      .meta({
        description: 'Most sequences that run at once on each GPU (vLLM max_num_seqs)',
        ...{ bins: SERVE_ACTION_BINS.batch_cap, bins_by: 'ratio' },
      }),
    kv_budget_fraction: z
      .number()
      .min(0.1)
      .max(1)
      .meta({
        description:
          'Share of the memory left by weights, draft and activations that the KV pool of each GPU takes',
        ...{ bins: SERVE_ACTION_BINS.kv_budget_fraction, bins_by: 'ratio' },
      }),
    speculation_depth: z.int().min(0).max(8).meta({
      description: 'Draft tokens proposed a decode step; 0 is off',
      bins: SERVE_ACTION_BINS.speculation_depth,
    }),
    quantization_tier: z.preprocess(tierOfIndex, z.enum(QUANTIZATION_TIERS)).meta({
      description: 'Precision of the weights; 0, 1 and 2 stand for them in this order',
      bins: SERVE_ACTION_BINS.quantization_tier,
    }),
    prefill_decode_split: z.boolean().meta({
      description: 'One GPU prefills and the other decodes, instead of both doing both',
      bins: SERVE_ACTION_BINS.prefill_decode_split,
    }),
    priority_routing: z.boolean().meta({
      description: 'Interactive requests are scheduled first and preempted last',
      bins: SERVE_ACTION_BINS.priority_routing,
    }),
  })
  .meta({ title: 'ServeAction', description: 'The serving configuration for the next window' });

export type ServeAction = z.infer<typeof serveActionSchema>;

/** Name of a knob: a field of the action. */
export type ServeKnob = keyof ServeAction;
export const SERVE_KNOBS = Object.keys(serveActionSchema.shape) as readonly ServeKnob[];

/** Settings that a sane operator starts with. `reset` applies them before the first action. */
export const DEFAULT_ACTION: ServeAction = {
  batch_cap: 32,
  kv_budget_fraction: 1,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
};

const free = z.boolean();
const objectiveMs = (what: string, typicalMost: number) => figure(amount, heavy(typicalMost), `${what}, ms`);
const share = (description: string) => figure(fraction, linear(1), description);

/**
 * The server itself: its speed by the law of its profile, memory, objectives and prices. The same in every window of an
 * episode. One policy can run many servers by it. On a real server, the one that the task supposes.
 */
const serverDescriptionSchema = z
  .object({
    decode_1_ms: figure(amount, heavy(200), 'Iteration of one sequence of 1,024 tokens at FP16, ms'),
    decode_64_ms: figure(amount, heavy(200), 'The same of 64 sequences, ms'),
    decode_256_ms: figure(amount, heavy(200), 'The same of 256 sequences, ms'),
    prefill_1k_ms: figure(amount, heavy(10_000), 'Prefill of a prompt of 1,024 tokens at FP16, ms'),
    prefill_8k_ms: figure(amount, heavy(10_000), 'The same of 8,192 tokens, ms'),
    int8_decode_64_ms: figure(amount, heavy(200), 'Iteration of 64 sequences at INT8, ms'),
    int4_decode_64_ms: figure(amount, heavy(200), 'Iteration of 64 sequences at INT4, ms'),
    int8_quality: share('Benchmark accuracy that INT8 keeps, relative to FP16'),
    int4_quality: share('Benchmark accuracy that INT4 keeps'),
    draft_ms: figure(amount, heavy(200), 'One draft pass of one sequence, ms'),
    draft_4_accepted: figure(amount, linear(4), 'Draft tokens accepted of 4, on the text of the task'),
    gpu_memory_gb: figure(amount, linear(80), 'Memory of a GPU, GB'),
    weights_gb: figure(amount, linear(80), 'Weights on each GPU at FP16, GB'),
    kv_tokens: figure(count, heavy(1_000_000), 'Tokens in the largest KV pool at FP16'),
    kv_bytes_per_token: figure(count, heavy(1_000_000), 'KV cache of one token, bytes'),
    reload_s: figure(amount, heavy(600), 'Time of a change of precision, s'),
    usd_per_hour: figure(amount, heavy(100), 'Price of each of the two servers, USD an hour'),
    interactive_ttft_ms: objectiveMs('Objective of interactive requests, time to first token', 60_000),
    interactive_tpot_ms: objectiveMs('Objective of interactive requests, time per output token', 200),
    batch_ttft_ms: objectiveMs('Objective of batch requests, time to first token', 60_000),
    batch_tpot_ms: objectiveMs('Objective of batch requests, time per output token', 200),
    best_effort_ttft_ms: objectiveMs('Objective of best-effort requests, time to first token', 60_000),
    best_effort_tpot_ms: objectiveMs('Objective of best-effort requests, time per output token', 200),
    throughput_weight: share('Weight of served tokens in the reward'),
    slo_weight: share('Weight of met objectives in the reward'),
    memory_weight: share('Price of the whole memory in the reward'),
    cost_weight: share('Weight of the cost in the reward'),
    reference_cost_per_1k: figure(
      amount,
      linear(0.01),
      'Cost of 1,000 output tokens that is charged in full, USD',
    ),
    free: z
      .object({
        batch_cap: free,
        kv_budget_fraction: free,
        speculation_depth: free,
        quantization_tier: free,
        prefill_decode_split: free,
        priority_routing: free,
      } satisfies Record<ServeKnob, z.ZodBoolean>)
      .meta({ description: 'Knobs that may be set; the others stay at the default' }),
  })
  .meta({ description: 'Speed, memory, objectives and prices of the server; the same in every window' });

export type ServerDescription = z.infer<typeof serverDescriptionSchema>;

/**
 * The server over a window, as the agent sees it. Latencies in ms, memory in GB (10^9 bytes), cost in USD.
 *
 * Scales are the same for all tasks, so that a normaliser needs no statistics and weights learned on one task fit
 * another. Shares stay as they are; counts, lengths, latencies and rates go by their logarithm. `GET /schema` has them
 * beside each figure, as `normalization`.
 */
export const serveObservationSchema = z
  .object({
    queue_depth: figure(count, heavy(1000), 'Requests waiting at the end of the window'),
    active_requests: figure(count, heavy(1000), 'Requests running at the end of the window'),
    kv_cache_occupancy: figure(
      fraction,
      linear(1),
      'Allocated share of the KV blocks at the end of the window',
    ),
    mean_prompt_length: figure(amount, heavy(8192), 'Mean prompt of the requests that arrived, tokens'),
    p50_ttft_ms: figure(amount, heavy(60_000), 'Median time to first token of the window, ms'),
    p99_ttft_ms: figure(amount, heavy(60_000), '99th percentile of the time to first token, ms'),
    p50_itl_ms: figure(amount, heavy(200), 'Median inter-token latency, ms'),
    throughput_tps: figure(amount, heavy(10_000), 'Output tokens a second'),
    slo_compliance_rate: figure(fraction, linear(1), 'Share of the window’s requests inside their SLO'),
    gpu_memory_used_gb: figure(
      amount,
      linear(80),
      'Weights, draft, activations, KV pool and co-tenants, GB a GPU',
    ),
    estimated_cost_per_1k: figure(amount, linear(0.01), 'Cost of 1,000 output tokens, USD'),
    request_arrival_rate: figure(amount, heavy(100), 'Arrivals a second over the window'),
    spec_acceptance_rate: figure(
      fraction,
      linear(1),
      'Accepted share of the draft tokens; 0 with speculation off',
    ),
    eviction_events: figure(count, heavy(1000), 'Preemptions in the window'),
    step_index: count.meta({ description: 'Windows played so far' }),
    task_id: z.string(),
    server: serverDescriptionSchema,
  })
  .meta({
    title: 'ServeObservation',
    description: 'The server as seen over the last window',
    features: [...WINDOW_FEATURES, ...SERVER_FEATURES],
  });

export type ServeObservation = z.infer<typeof serveObservationSchema>;

/** Fields of the observation that are measured over a window. */
export type ObservedFigure = Exclude<keyof ServeObservation, 'step_index' | 'task_id' | 'server'>;

/** The figures in the order in which `normalizeObservation` writes them. */
export const OBSERVED_FIGURES = Object.keys(serveObservationSchema.shape).filter(
  (name): name is ObservedFigure => !['step_index', 'task_id', 'server'].includes(name),
);
const SCALES = OBSERVED_FIGURES.map(
  (name) => serveObservationSchema.shape[name].meta()?.normalization as ObservationScale,
);

/** An observation as numbers for a learner, in the order of `OBSERVED_FIGURES`. They may exceed 1 and are never negative. */
export function normalizeObservation(
  observation: Readonly<Record<ObservedFigure, number>>,
  into: Float32Array = new Float32Array(OBSERVED_FIGURES.length),
): Float32Array {
  for (const [i, name] of OBSERVED_FIGURES.entries()) {
    const { transform, divisor } = SCALES[i];
    const value = observation[name];
    into[i] = (transform === 'log1p' ? Math.log1p(value) : value) / divisor;
  }
  return into;
}

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
