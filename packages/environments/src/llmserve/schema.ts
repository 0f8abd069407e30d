import { z } from 'zod';
import { amount, count, type Feature, figures, knob } from '../feature.ts';
import observed from './observation.json' with { type: 'json' };

/**
 * A window as numbers of about the same size: its figures, heavy-tailed ones by their logarithm; the configuration in
 * force, without which the effect of a change cannot be told, and for how long its weights have been; and the traffic
 * smoothed, and compared to its slow average. Averages of weight 0.1 remember about ten windows, those of 0.4 about two.
 */
export const WINDOW_FEATURES = observed.features.window as readonly Feature[];
/** Windows in units of the server, and the server itself: for policies that run many servers. */
export const SERVER_FEATURES = observed.features.server as readonly Feature[];

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
    batch_cap: knob(
      z.int().min(1).max(512),
      [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
      'Most sequences that run at once on each GPU (vLLM max_num_seqs)',
      'ratio',
    ),
    kv_budget_fraction: knob(
      z.number().min(0.1).max(1),
      [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1],
      'Share of the memory left by weights, draft and activations that the KV pool of each GPU takes',
      'ratio',
    ),
    speculation_depth: knob(
      z.int().min(0).max(8),
      [0, 1, 2, 3, 4, 5, 6, 8],
      'Draft tokens proposed a decode step; 0 is off',
    ),
    quantization_tier: knob(
      z.preprocess(tierOfIndex, z.enum(QUANTIZATION_TIERS)),
      QUANTIZATION_TIERS,
      'Precision of the weights; 0, 1 and 2 stand for them in this order',
    ),
    prefill_decode_split: knob(
      z.boolean(),
      [false, true],
      'One GPU prefills and the other decodes, instead of both doing both',
    ),
    priority_routing: knob(
      z.boolean(),
      [false, true],
      'Interactive requests are scheduled first and preempted last',
    ),
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

/**
 * The server itself: its speed by the law of its profile, memory, objectives and prices. The same in every window of an
 * episode. One policy can run many servers by it. Of a server without a profile an estimate, refined window by window.
 */
const serverDescriptionSchema = z
  .object({
    ...figures(observed.figures.server),
    free: z
      .object(Object.fromEntries(SERVE_KNOBS.map((knob) => [knob, free])) as Record<ServeKnob, typeof free>)
      .meta({ description: 'Knobs that may be set; the others stay at the default' }),
  })
  .meta({ description: 'Speed, memory, objectives and prices of the server; the same in every window' });

export type ServerDescription = z.infer<typeof serverDescriptionSchema>;

/** The window in units of the server: its load, its latencies and what a precision costs mean the same on every server. */
const relativeSchema = z
  .object(figures(observed.figures.relative))
  .meta({ description: 'The window in units of the server' });

export type RelativeFigures = z.infer<typeof relativeSchema>;

/**
 * The server over a window, as the agent sees it. Latencies in ms, memory in GB (10^9 bytes), cost in USD.
 *
 * Scales are the same for all tasks, so that a normaliser needs no statistics and weights learned on one task fit
 * another. Shares stay as they are; counts, lengths, latencies and rates go by their logarithm. `GET /schema` has them
 * beside each figure, as `normalization`.
 */
export const serveObservationSchema = z
  .object({
    ...figures(observed.figures.window),
    step_index: count.meta({ description: 'Windows played so far' }),
    task_id: z.string(),
    relative: relativeSchema,
    server: serverDescriptionSchema,
  })
  .meta({
    title: 'ServeObservation',
    description: 'The server as seen over the last window',
    features: [...WINDOW_FEATURES, ...SERVER_FEATURES],
  });

export type ServeObservation = z.infer<typeof serveObservationSchema>;

/** Fields of the observation that are measured over a window. */
export type ObservedFigure = Exclude<
  keyof ServeObservation,
  'step_index' | 'task_id' | 'relative' | 'server'
>;

/** The figures in the order of the schema. */
export const OBSERVED_FIGURES = Object.keys(observed.figures.window) as ObservedFigure[];

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
