import { z } from 'zod';
import { type Feature, knob } from '../feature.ts';
import features from './features.json' with { type: 'json' };

/** Steps of an episode; each is one second of traffic. */
export const EPISODE_STEPS = 200;

/** Most requests that wait; who comes when it is full is turned away. */
export const QUEUE_CAPACITY = 512;

/** Draft lengths that an action may choose. */
export const SPEC_LENGTHS = [0, 1, 2, 4, 8] as const;

/** `quant_tier` in words; the index is the value. */
const QUANT_TIERS = ['FP16', 'INT8', 'INT4'] as const;

/** The knobs, in the order in which documents list them. */
export const KNOBS = ['kv_budget', 'spec_length', 'batch_size', 'prefill_disagg', 'quant_tier'] as const;
export type Knob = (typeof KNOBS)[number];

/** Clients of InferenceGym send 0 and 1 where a boolean is meant. */
const flag = z.preprocess((sent) => (sent === 0 ? false : sent === 1 ? true : sent), z.boolean());
/** And some send the name of a tier. */
const tier = z.preprocess(
  (sent) => {
    const index = (QUANT_TIERS as readonly unknown[]).indexOf(sent);
    return index < 0 ? sent : index;
  },
  z.literal([0, 1, 2]),
);

/**
 * A step as numbers of about the same size: the observation, heavy-tailed amounts by their logarithm, and the
 * configuration in force, without which the effect of a change cannot be told.
 */
export const GYM_FEATURES = features.window as readonly Feature[];

/** The serving configuration for the next step. What is left out has its default. */
export const gymActionSchema = z
  .strictObject({
    kv_budget: knob(
      z.number().min(0.1).max(1).default(1),
      [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
      'Share of the memory left to KV that the pool takes',
      'ratio',
    ),
    spec_length: knob(
      z.literal(SPEC_LENGTHS).default(0),
      SPEC_LENGTHS,
      'Draft tokens of a decode step; 0 is off',
    ),
    batch_size: knob(
      z.int().min(1).max(512).default(32),
      [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
      'Most sequences that run at once',
      'ratio',
    ),
    prefill_disagg: knob(
      flag.default(false),
      [false, true],
      'Prefill on a GPU of its own, which is paid for as well; off by default',
    ),
    quant_tier: knob(
      tier.default(0),
      [0, 1, 2],
      'Precision of the weights: 0 FP16 (default), 1 INT8, 2 INT4. A change restarts the server',
    ),
  })
  .meta({ title: 'InferenceAction', description: 'The serving configuration for the next step' });

export type GymAction = z.infer<typeof gymActionSchema>;

/** Default action of InferenceGym: a reset applies it, and the baseline agent keeps it. */
export const GYM_DEFAULT_ACTION: GymAction = gymActionSchema.parse({});

const within = (low: number, high: number, description: string) =>
  z.number().min(low).max(high).meta({ description });

/** The 12 fields in the order in which a vector has them. A value beyond its range shows as the end of the range. */
export const gymObservationSchema = z
  .object({
    queue_depth: within(0, QUEUE_CAPACITY, 'Requests that wait'),
    mean_prompt_len: within(32, 8192, 'Mean prompt of the requests that arrived last, tokens'),
    arrival_rate: within(0, 200, 'Arrivals a second, moving average over 10 steps'),
    kv_cache_occupancy: within(0, 1, 'Share of the KV pool that the running batch fills'),
    ttft_p50: within(0, 5000, 'Median time to first token of the last 20 requests, ms'),
    tpot_p50: within(0, 500, 'Time per output token, ms'),
    slo_violation_rate: within(0, 1, 'Violated share of the requests judged in the step'),
    gpu_memory_used_gb: within(0, 80, 'Memory of the GPU, GB; 40 when it ran out'),
    spec_accept_rate: within(0, 1, 'Accepted share of the draft tokens; 0 with speculation off'),
    priority_distribution: z
      .array(z.number().min(0).max(1))
      .length(3)
      .meta({ description: 'Shares of interactive, batch and best-effort among the arrivals' }),
    timestep: within(0, EPISODE_STEPS, 'Steps played'),
    cost_so_far: z.number().min(0).meta({ description: 'US cents since the reset' }),
  })
  .meta({
    title: 'InferenceObservation',
    description: 'The server as seen after a step',
    features: GYM_FEATURES,
  });

export type GymObservation = z.infer<typeof gymObservationSchema>;

const PHASES = ['warmup', 'steady', 'burst', 'cooldown'] as const;
export type Phase = (typeof PHASES)[number];

/** Totals of the episode so far. */
export const gymStateSchema = z
  .object({
    task_id: z.int().min(1).max(3),
    seed: z.int().min(0),
    cumulative_reward: z.number(),
    done: z.boolean(),
    workload_phase: z.enum(PHASES),
  })
  .meta({ title: 'InferenceState' });

export type GymState = z.infer<typeof gymStateSchema>;
