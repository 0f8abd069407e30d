import { findProfile, ProfileError } from '@servegym/profiles';
import { z } from 'zod';
import { WORKLOAD_IDS } from '../../llmserve/workload/fitted-workload.ts';
import { lengths, maskedKnobs, parseTask, positive, taskHead } from '../../task-file.ts';
import { FLEET_KNOBS, fleetActionSchema } from '../schema.ts';
import { fleetProfileFits } from '../shifts.ts';
import { FLEET_CLASSES, type FleetTask } from './fleet-task.ts';

/** Both ends of a range, the lower first. */
const range = (item: z.ZodNumber) =>
  z.tuple([item, item]).refine(([low, high]) => low <= high, 'Expected the lower end first');

const seconds = z.number().min(0).max(86_400);
const pool = { profile: z.string(), coldStartSeconds: range(z.number().min(0).max(3600)) };
const whole = (most: number) => z.int().min(1).max(most);

const surges = z.strictObject({
  everySeconds: z.number().min(1).max(1e6),
  factor: range(z.number().min(1).max(100)),
  seconds: range(seconds),
  rampSeconds: z.number().positive().max(86_400),
});

const stream = z
  .strictObject({
    name: z.string().min(1).max(100),
    class: z.enum(FLEET_CLASSES),
    rate: z.strictObject({
      perSecond: z.number().positive().max(10_000),
      peakToTrough: z.number().min(1).max(1000),
      peakHour: z.number().min(0).max(24).optional(),
      surges: z.array(surges).max(10).optional(),
    }),
    lengths: z.union([z.enum(WORKLOAD_IDS), z.strictObject({ prompt: lengths, output: lengths })]),
    promptScale: z.number().positive().max(100).optional(),
    systemPrompt: z.strictObject({ tokens: whole(100_000), applications: whole(1_000_000) }).optional(),
    retrieval: z
      .strictObject({
        documents: whole(1_000_000),
        passages: whole(100),
        tokens: whole(100_000),
        exponent: z.number().min(0).max(4),
      })
      .optional(),
    turns: z
      .strictObject({
        mean: z.number().min(1).max(1000),
        added: lengths,
        thinkSeconds: lengths,
        maxPrompt: whole(1_000_000),
      })
      .optional(),
  })
  .refine(
    ({ lengths, turns }) => turns === undefined || typeof lengths !== 'string',
    'Expected log-normal lengths for a stream with turns',
  );

const objective = z.strictObject({
  ttftMs: positive.optional(),
  tpotMs: positive.optional(),
  e2eMs: positive.optional(),
});
const price = z.strictObject({
  usdPerMillionInput: z.number().min(0).max(1e6),
  usdPerMillionOutput: z.number().min(0).max(1e6),
});
const ofClasses = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ interactive: item, batch: item, best_effort: item });

/** A task of one's own as a file holds it: `FleetTask`, where what has a usual value may be left out. */
const fleetTaskSchema = z
  .strictObject({
    ...taskHead,
    windows: whole(20_160),
    windowSeconds: z.int().min(5).max(600).default(30),
    ...pool,
    second: z.strictObject(pool).optional(),
    maxReplicas: whole(32),
    metricsIntervalMs: z.number().min(1).max(60_000).default(1000),
    failuresPerHour: z.number().min(0).max(3600).default(0),
    objectives: ofClasses(objective),
    prices: ofClasses(price),
    referenceUsd: positive,
    defaultAction: fleetActionSchema,
    maskedKnobs: maskedKnobs(FLEET_KNOBS),
    streams: z.array(stream).min(1).max(20),
  })
  .check(({ value, issues }) => {
    const complain = (path: (string | number)[], message: string) =>
      issues.push({ code: 'custom', path, input: value, message });
    for (const [path, name] of [
      [['profile'], value.profile],
      [['second', 'profile'], value.second?.profile],
    ] as const) {
      if (name === undefined) continue;
      try {
        if (fleetProfileFits(findProfile(name), value)) continue;
        complain(
          [...path],
          'Expected a profile whose KV pool holds the longest request of the streams at FP16',
        );
      } catch (error) {
        if (!(error instanceof ProfileError)) throw error;
        complain([...path], error.message);
      }
    }
    const names = value.streams.map(({ name }) => name);
    if (new Set(names).size < names.length)
      complain(['streams'], 'Expected a name of its own for each stream');
    for (const [at, { turns }] of value.streams.entries()) {
      if (turns === undefined || turns.thinkSeconds.min * 1000 >= value.metricsIntervalMs) continue;
      complain(
        ['streams', at, 'turns', 'thinkSeconds', 'min'],
        `Expected at least metricsIntervalMs, ${value.metricsIntervalMs / 1000} s`,
      );
    }
  });

/** A task as a file holds it. */
export type FleetTaskFile = z.input<typeof fleetTaskSchema>;

/**
 * Reads a task of one's own.
 * @param source where it comes from, for the message
 * @throws TaskError that lists what is wrong, field by field
 */
export function parseFleetTask(candidate: unknown, source: string): FleetTask {
  return parseTask(fleetTaskSchema, candidate, source);
}
