import { findProfile, ProfileError } from '@servegym/simulator';
import { z } from 'zod';
import { QUANTIZATION_TIERS, SERVE_KNOBS, serveActionSchema } from '../schema.ts';
import { REQUEST_CLASSES, type ServeTask } from './serve-task.ts';

const positive = z.number().positive().max(1e9);
const share = z.number().min(0).max(1);
/** Both ends of a range, the lower first; one number stands for both. */
const range = (item: z.ZodNumber | z.ZodInt) =>
  z
    .union([z.tuple([item, item]), item.transform((both): [number, number] => [both, both])])
    .refine(([low, high]) => low <= high, 'Expected the lower end first');

const lengths = z
  .strictObject({
    median: positive,
    sigma: z.number().min(0).max(4),
    min: z.int().min(1).max(1_000_000),
    max: z.int().min(1).max(1_000_000),
  })
  .refine(({ min, max }) => min <= max, 'Expected min to be at most max');

const classTraffic = z.strictObject({ share, prompt: lengths, output: lengths });

const phase = z.strictObject({
  name: z.string().min(1).max(100),
  weight: positive.default(1),
  windows: range(z.int().min(1).max(10_000)),
  arrivalsPerSecond: range(z.number().positive().max(1000)),
  burstiness: z.number().min(0).max(3).default(0),
  traffic: z
    .partialRecord(z.enum(REQUEST_CLASSES), classTraffic)
    .refine(
      (traffic) => Math.abs(Object.values(traffic).reduce((sum, { share }) => sum + share, 0) - 1) < 1e-6,
      'Expected the shares of the classes to sum to 1',
    ),
  tenantGiB: range(z.number().min(0).max(1000)).default([0, 0]),
  acceptance: z.string().optional(),
  qualityValue: z.number().min(0).max(1000),
});

const maskedKnobs = z
  .array(z.enum(SERVE_KNOBS))
  .min(1, 'Expected at least one knob; leave the field out where all are free')
  .refine((knobs) => new Set(knobs).size === knobs.length, 'Expected each knob once')
  .refine(
    (knobs) => new Set(knobs).size < SERVE_KNOBS.length,
    'Expected a knob to be left free: with all of them masked there is nothing to decide',
  );

const objective = z.strictObject({ ttftMs: positive, tpotMs: positive, weight: positive });

/** A task of one's own as a file holds it: `ServeTask`, where what has a usual value may be left out. */
const serveTaskSchema = z
  .strictObject({
    id: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, {
      error: 'Expected lower-case letters, digits, dashes and underscores, at most 64',
    }),
    name: z.string().min(1).max(200),
    difficulty: z.enum(['easy', 'medium', 'hard']).default('medium'),
    description: z.string().min(1).max(2000),
    windows: z.int().min(1).max(2000),
    windowSeconds: z.number().min(0.1).max(600).default(5),
    profile: z.string(),
    acceptance: z.string().default('sharegpt'),
    objectives: z.strictObject({
      interactive: objective,
      batch: objective,
      best_effort: objective,
    }),
    reward: z
      .strictObject({ throughput: share, slo: share, memory: share, cost: share })
      .refine(
        ({ throughput, slo }) => throughput + slo <= 1 + 1e-9,
        'Expected throughput + slo to be at most 1',
      )
      .refine(({ memory, cost }) => memory + cost <= 1 + 1e-9, 'Expected memory + cost to be at most 1'),
    referenceCostPer1k: positive,
    defaultAction: serveActionSchema,
    maskedKnobs: maskedKnobs.optional(),
    phases: z.array(phase).min(1).max(50),
  })
  .check(({ value, issues }) => {
    const complain = (path: (string | number)[], message: string) =>
      issues.push({ code: 'custom', path, input: value, message });
    let profile: ReturnType<typeof findProfile>;
    try {
      profile = findProfile(value.profile);
    } catch (error) {
      if (!(error instanceof ProfileError)) throw error;
      complain(['profile'], error.message);
      return;
    }
    const missing = QUANTIZATION_TIERS.filter((tier) => profile.weights[tier] === undefined);
    if (missing.length > 0) {
      complain(['profile'], `Expected a profile with all precisions; it lacks ${missing.join(', ')}`);
    }
    const tables = Object.keys(profile.speculation?.survival ?? {});
    for (const [i, of] of [value, ...value.phases].entries()) {
      if (of.acceptance === undefined || tables.includes(of.acceptance)) continue;
      const path = i === 0 ? ['acceptance'] : ['phases', i - 1, 'acceptance'];
      complain(
        path,
        `Expected one of the profile's acceptance tables: ${tables.join(', ') || 'it has none'}`,
      );
    }
  });

/** A task as a file holds it. */
export type ServeTaskFile = z.input<typeof serveTaskSchema>;

/** A task in a file that cannot be played. */
export class ServeTaskError extends Error {
  override readonly name = 'ServeTaskError';
  readonly isInputError = true;
  readonly code = 'INVALID_TASK';
}

/**
 * Reads a task of one's own.
 * @param source where it comes from, for the message
 * @throws ServeTaskError that lists what is wrong, field by field
 */
export function parseServeTask(candidate: unknown, source: string): ServeTask {
  const reading = serveTaskSchema.safeParse(candidate);
  if (reading.success) return reading.data;
  const problems = reading.error.issues.map(({ path, message }) => `${path.join('.') || 'task'}: ${message}`);
  throw new ServeTaskError(`${source} is no task: ${problems.join('; ')}`);
}

/** Says nothing at run time; it lets an editor check a task that is written in TypeScript. */
export function defineServeTask(task: ServeTaskFile): ServeTaskFile {
  return task;
}
