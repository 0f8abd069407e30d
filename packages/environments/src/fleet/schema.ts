import { z } from 'zod';
import { amount, count, type Feature, figures, knob } from '../feature.ts';
import observed from './observation.json' with { type: 'json' };

/**
 * A window as numbers of about the same size: its figures, heavy-tailed ones by their logarithm; demand for each replica;
 * the settings in force; and demand smoothed, and compared to its slow average. Averages of weight 0.1 remember about ten
 * windows, five minutes; those of 0.4 about two.
 */
export const FLEET_FEATURES = observed.features.window as readonly Feature[];
/** The fleet that the windows are of: constant in an episode, for policies that run many. */
export const FLEET_SERVER_FEATURES = observed.features.server as readonly Feature[];

/** Ids of the tasks, easiest first. */
export const FLEET_TASK_IDS = ['diurnal', 'flash_crowds', 'agents', 'coding_agents'] as const;
export type FleetTaskId = (typeof FLEET_TASK_IDS)[number];

/** `admission_seconds` from which on nobody is refused. */
export const ADMIT_ALL_SECONDS = 600;

const COUNTS = Array.from({ length: 33 }, (_, count) => count);
/** Over the weight of few requests in flight: only ratios decide. */
const weight = z.number().min(0).max(4);

/** The fleet's settings for the next window. */
export const fleetActionSchema = z
  .strictObject({
    replicas: knob(
      z.int().min(0).max(32),
      COUNTS,
      'Replicas wanted; one that starts is billed at once, one too many drains, and one that no GPU is free for waits',
    ),
    second_replicas: knob(
      z.int().min(0).max(32).default(0),
      COUNTS,
      'The same of the second kind of replica; where the task has none, there are no GPUs for them',
    ),
    prefill_replicas: knob(
      z.int().min(0).max(16),
      [0, 1, 2, 3, 4, 6, 8, 12, 16],
      'Of the ready replicas, those that only prefill; 0: each does both',
    ),
    routing_cache: knob(
      weight,
      [0, 0.5, 1, 2],
      'Weight of free KV blocks in the choice of a replica, where that of few requests in flight is 1',
    ),
    routing_prefix: knob(
      weight,
      [0, 0.5, 1, 2, 4],
      'The same of the share of the prompt that the replica was sent before',
    ),
    admission_seconds: knob(
      z.number().min(0).max(ADMIT_ALL_SECONDS),
      [0, 1, 2, 5, 10, 20, 60, ADMIT_ALL_SECONDS],
      `Seconds of queue above which best effort is refused with 429, and above twice of which batch is; ${ADMIT_ALL_SECONDS}: nobody`,
    ),
    max_num_batched_tokens: knob(
      z.int().min(512).max(16_384),
      [512, 1024, 2048, 4096, 8192, 16_384],
      'Token budget of an iteration (vLLM max_num_batched_tokens)',
      'ratio',
    ),
    max_num_active_seqs: knob(
      z.int().min(1).max(512),
      [1, 16, 32, 64, 96, 128, 192, 256, 384, 512],
      'Most sequences that run at once on a replica (vLLM max_num_active_seqs)',
      'ratio',
    ),
  })
  .meta({ title: 'FleetAction', description: 'The settings of the fleet for the next window' });

export type FleetAction = z.infer<typeof fleetActionSchema>;
/** Name of a knob: a field of the action. */
export type FleetKnob = keyof FleetAction;
export const FLEET_KNOBS = Object.keys(fleetActionSchema.shape) as readonly FleetKnob[];

const ofClass = (name: string) => z.object(figures(observed.figures.class, name));

/** Description of the server: the same over an episode. One policy can so run many servers. */
const fleetServerSchema = z
  .object({
    ...figures(observed.figures.replica),
    second: z
      .object(figures(observed.figures.replica))
      .meta({ description: 'The second kind of replica; 0 where there is none' }),
    ...figures(observed.figures.server),
  })
  .meta({ title: 'FleetServer' });

/**
 * The fleet over a window, as an operator's monitoring shows it. Names are those of vLLM's metrics, summed or averaged
 * over the replicas. Percentiles of a window without samples are 0.
 */
export const fleetObservationSchema = z
  .object({
    ...figures(observed.figures.window),
    interactive: ofClass('interactive'),
    batch: ofClass('batch'),
    best_effort: ofClass('best_effort'),
    server: fleetServerSchema,
    step_index: count.meta({ description: 'Windows played so far' }),
    task_id: z.string(),
  })
  .meta({
    title: 'FleetObservation',
    description: 'The fleet as seen over the last window',
    features: [...FLEET_FEATURES, ...FLEET_SERVER_FEATURES],
  });

export type FleetObservation = z.infer<typeof fleetObservationSchema>;
export type FleetServer = z.infer<typeof fleetServerSchema>;
export type ReplicaDescription = FleetServer['second'];

/** Totals of the episode so far. */
export const fleetStateSchema = z
  .object({
    task_id: z.string(),
    trace: z.string().nullable().meta({ description: 'Trace that the requests come from, with its digest' }),
    shift: z.string().nullable(),
    rate_scale: z.number(),
    profile: z.string().meta({ description: 'Engine profile of a replica' }),
    second_profile: z.string().nullable().meta({ description: 'That of a replica of the second kind' }),
    seed: count,
    total_requests: count.meta({ description: 'Requests that arrived' }),
    total_completed: count,
    total_attained: count.meta({ description: 'Requests completed inside their objectives' }),
    total_refused: count,
    revenue_usd: amount,
    gpu_usd: amount,
    gpu_hours: amount,
    cumulative_reward: z.number(),
    elapsed_simulated_time_s: amount,
    done: z.boolean(),
  })
  .meta({ title: 'FleetState' });

export type FleetState = z.infer<typeof fleetStateSchema>;
