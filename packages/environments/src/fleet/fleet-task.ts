import { type EngineProfile, kvPoolBlocks, kvTokens } from '@servegym/simulator';
import { z } from 'zod';
import {
  complain,
  type Immutable,
  lengths,
  maskedKnobs,
  positive,
  profileOf,
  REQUEST_CLASSES,
  Tasks,
  taskHead,
} from '../tasks.ts';
import type { ServeTrace } from '../traces.ts';
import { WORKLOAD_IDS } from '../workload/fitted-workload.ts';
import { FLEET_KNOBS, type FleetKnob, type FleetTaskId, fleetActionSchema } from './schema.ts';
import shipped from './tasks.json' with { type: 'json' };

/** Both ends of a range, the lower first. */
const range = (item: z.ZodNumber) =>
  z.tuple([item, item]).refine(([low, high]) => low <= high, 'Expected the lower end first');
const whole = (most: number) => z.int().min(1).max(most);

/** Surges of a stream. Each is drawn: its begin, how much it adds, how long it lasts and how long it takes to rise. */
const surges = z.strictObject({
  /** Mean time between the begins of two, s. */
  everySeconds: z.number().min(1).max(1e6),
  /** Rate over the rate without the surge, at its height; least and most. */
  factor: range(z.number().min(1).max(100)),
  /** Duration, s; least and most. */
  seconds: range(z.number().min(0).max(86_400)),
  /** Time in which the rate rises, and falls again, s. */
  rampSeconds: z.number().positive().max(86_400),
});
export type Surges = Immutable<z.output<typeof surges>>;

/** Arrivals a second, or begins of sessions a second, over time. */
const rateCurve = z.strictObject({
  /** Mean over a day. */
  perSecond: z.number().positive().max(10_000),
  /** Rate at the busiest hour over that at the quietest. 1: the same all day. */
  peakToTrough: z.number().min(1).max(1000),
  /** Hour of the day with the highest rate. Default 14. */
  peakHour: z.number().min(0).max(24).optional(),
  surges: z.array(surges).max(10).optional(),
});
export type RateCurve = Immutable<z.output<typeof rateCurve>>;

/** Turns of a conversation, each of whose prompts repeats the one before it, its answer, and what is new. */
const turns = z.strictObject({
  /** Mean number of turns; geometric. */
  mean: z.number().min(1).max(1000),
  /** Tokens that a later turn adds: what the user says, or what a tool answered. */
  added: lengths,
  /** Time from an answer to the next turn, s. At least the metrics interval of the fleet. */
  thinkSeconds: lengths,
  /** Longest prompt, tokens; a conversation ends before it. */
  maxPrompt: whole(1_000_000),
});

const stream = z
  .strictObject({
    name: z.string().min(1).max(100),
    class: z.enum(REQUEST_CLASSES),
    rate: rateCurve,
    /** Lengths of a first request: those of a fitted public trace, or log-normal tokens. */
    lengths: z.union([z.enum(WORKLOAD_IDS), z.strictObject({ prompt: lengths, output: lengths })]),
    /** Prompts, and what later turns add, are this many times as long. Default 1. */
    promptScale: z.number().positive().max(100).optional(),
    /** Tokens that the prompts of an application begin with, and how many applications share the stream. */
    systemPrompt: z.strictObject({ tokens: whole(100_000), applications: whole(1_000_000) }).optional(),
    /**
     * Passages that a retrieval puts behind the system prompt: each of so many tokens, `passages` of them, drawn from
     * `documents` with the popularity of rank r in proportion to r^-exponent.
     */
    retrieval: z
      .strictObject({
        documents: whole(1_000_000),
        passages: whole(100),
        tokens: whole(100_000),
        exponent: z.number().min(0).max(4),
      })
      .optional(),
    turns: turns.optional(),
  })
  .refine(
    ({ lengths, turns }) => turns === undefined || typeof lengths !== 'string',
    'Expected log-normal lengths for a stream with turns',
  );
export type RequestStream = Immutable<z.output<typeof stream>>;

/** Latency objectives of a class, ms, to the first token, between tokens and in all. A request earns its price when it meets those given. */
const objective = z.strictObject({
  ttftMs: positive.optional(),
  tpotMs: positive.optional(),
  e2eMs: positive.optional(),
});
const usd = z.number().min(0).max(1e6);
const price = z.strictObject({
  usdPerMillionInput: usd,
  /** Input tokens that an earlier turn had, in its prompt or its answer. Default `usdPerMillionInput`. */
  usdPerMillionRepeated: usd.optional(),
  usdPerMillionOutput: usd,
});
const ofClasses = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ interactive: item, batch: item, best_effort: item });

/** Spot capacity: a share of the price, and how often an hour the provider takes a replica back, after which notice. */
const spot = z.strictObject({
  priceShare: z.number().min(0).max(1),
  reclaimsPerHour: z.number().min(0).max(60),
  noticeSeconds: z.number().min(0).max(3600),
});
/** Replicas of one kind: the engine profile of each, and least and most seconds of a cold start. */
const pool = {
  profile: z.string(),
  coldStartSeconds: range(z.number().min(0).max(3600)),
  spot: spot.optional(),
};
const poolSchema = z.strictObject(pool);
export type FleetPoolTask = Immutable<z.output<typeof poolSchema>>;

/** One task of `fleet` as a file holds it; what has a usual value may be left out. */
const fleetTaskSchema = z
  .strictObject({
    ...taskHead,
    /** Windows of an episode. */
    windows: whole(20_160),
    /** Length of a window, s. */
    windowSeconds: z.int().min(5).max(600).default(30),
    ...pool,
    /** Memory of the host for KV that a replica's GPUs have no room for (vLLM kv_offloading_size), GiB. Default none. */
    hostKvGiB: z.number().positive().max(1e5).optional(),
    /** Replicas on other GPUs, or on spot capacity, beside the first. Default: all replicas are alike. */
    second: poolSchema.optional(),
    /** Replicas that there are GPUs for, of both kinds together. */
    maxReplicas: whole(32),
    /** Period at which the gateway sees the replicas' metrics, ms. */
    metricsIntervalMs: z.number().min(1).max(60_000).default(1000),
    /** Failures of a replica an hour. */
    failuresPerHour: z.number().min(0).max(3600).default(0),
    objectives: ofClasses(objective),
    prices: ofClasses(price),
    /** USD that a reward of 1 stands for: about what a window of the task's mean traffic is worth. */
    referenceUsd: positive,
    /** Settings in force when an episode begins. */
    defaultAction: fleetActionSchema,
    maskedKnobs: maskedKnobs(FLEET_KNOBS),
    streams: z.array(stream).min(1).max(20),
  })
  .check((context) => {
    const { value } = context;
    for (const [path, name] of [
      [['profile'], value.profile],
      [['second', 'profile'], value.second?.profile],
    ] as const) {
      const profile = name === undefined ? undefined : profileOf(context, path, name);
      if (profile === undefined || fleetProfileFits(profile, value)) continue;
      complain(
        context,
        path,
        'Expected a profile whose KV pool holds the longest request of the streams at FP16',
      );
    }
    const names = value.streams.map(({ name }) => name);
    if (new Set(names).size < names.length) {
      complain(context, ['streams'], 'Expected a name of its own for each stream');
    }
    for (const [at, { turns }] of value.streams.entries()) {
      if (turns === undefined || turns.thinkSeconds.min * 1000 >= value.metricsIntervalMs) continue;
      const least = `Expected at least metricsIntervalMs, ${value.metricsIntervalMs / 1000} s`;
      complain(context, ['streams', at, 'turns', 'thinkSeconds', 'min'], least);
    }
  });

/** One task of `fleet`. All that makes it what it is stands in its file. */
export type FleetTask = Immutable<z.output<typeof fleetTaskSchema>> & {
  /** Requests of a trace instead of the streams, `rateScale` times as fast as recorded; its end is that of the requests. */
  readonly trace?: { readonly requests: ServeTrace; readonly rateScale: number };
};

/** The tasks by id, easiest first. Their file names the source of each figure, or says that it is a choice. */
export const FLEET_TASKS = shipped.tasks as unknown as Readonly<Record<FleetTaskId, FleetTask>>;

/** These, and those of people who play their own. */
export const fleetTasks = new Tasks<FleetTask, FleetTaskId>(FLEET_TASKS, {
  schema: fleetTaskSchema,
  mark: 'streams',
});

/** The knobs that decide nothing in a task: those that it masks, and the replicas of a second kind where it has none. */
export function idleFleetKnobs({ maskedKnobs = [], second }: FleetTask): readonly FleetKnob[] {
  return second === undefined ? [...new Set([...maskedKnobs, 'second_replicas' as const])] : maskedKnobs;
}

/** True when a replica of this profile holds the KV of the longest prompt that a task foresees. */
export function fleetProfileFits(profile: EngineProfile, task: Pick<FleetTask, 'streams'>): boolean {
  if (profile.weights.FP16 === undefined) return false;
  return kvTokens(profile, kvPoolBlocks(profile, 'FP16', false, 1)) >= longestRequest(task);
}

/** Tokens of the longest request that the streams of a task foresee; those of fitted lengths are short. */
function longestRequest({ streams }: Pick<FleetTask, 'streams'>): number {
  const longest = streams.map(({ lengths, turns, promptScale = 1 }) => {
    if (typeof lengths === 'string') return 0;
    return Math.max(promptScale * lengths.prompt.max, turns?.maxPrompt ?? 0) + lengths.output.max;
  });
  return Math.max(...longest);
}
