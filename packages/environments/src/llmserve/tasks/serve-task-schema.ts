import { findProfile, ProfileError } from '@servegym/profiles';
import { z } from 'zod';
import { lengths, maskedKnobs, parseTask, positive, taskHead } from '../../task-file.ts';
import { QUANTIZATION_TIERS, SERVE_KNOBS, serveActionSchema } from '../schema.ts';
import { REQUEST_CLASSES, type ServeTask } from './serve-task.ts';

const share = z.number().min(0).max(1);
/** Both ends of a range, the lower first; one number stands for both. */
const range = (item: z.ZodNumber | z.ZodInt) =>
  z
    .union([z.tuple([item, item]), item.transform((both): [number, number] => [both, both])])
    .refine(([low, high]) => low <= high, 'Expected the lower end first');

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

const objective = z.strictObject({ ttftMs: positive, tpotMs: positive, weight: positive });

/** A task of one's own as a file holds it: `ServeTask`, where what has a usual value may be left out. */
const serveTaskSchema = z
  .strictObject({
    ...taskHead,
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
    maskedKnobs: maskedKnobs(SERVE_KNOBS),
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

/**
 * Reads a task of one's own.
 * @param source where it comes from, for the message
 * @throws TaskError that lists what is wrong, field by field
 */
export function parseServeTask(candidate: unknown, source: string): ServeTask {
  return parseTask(serveTaskSchema, candidate, source);
}

/** Says nothing at run time; it lets an editor check a task that is written in TypeScript. */
export function defineServeTask(task: ServeTaskFile): ServeTaskFile {
  return task;
}
