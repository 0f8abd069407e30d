import { z } from 'zod';

export const positive = z.number().positive().max(1e9);

/** Tokens or times that are log-normal, held within their bounds. */
export const lengths = z
  .strictObject({
    median: positive,
    sigma: z.number().min(0).max(4),
    min: z.int().min(1).max(1_000_000),
    max: z.int().min(1).max(1_000_000),
  })
  .refine(({ min, max }) => min <= max, 'Expected min to be at most max');

/** Names and length of a task, in each environment. */
export const taskHead = {
  id: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, {
    error: 'Expected lower-case letters, digits, dashes and underscores, at most 64',
  }),
  name: z.string().min(1).max(200),
  difficulty: z.enum(['easy', 'medium', 'hard']).default('medium'),
  description: z.string().min(1).max(2000),
};

/** The schema of the knobs that a task masks. */
export function maskedKnobs<Knob extends string>(knobs: readonly Knob[]) {
  return z
    .array(z.enum(knobs as readonly [Knob, ...Knob[]]))
    .min(1, 'Expected at least one knob; leave the field out where all are free')
    .refine((masked) => new Set(masked).size === masked.length, 'Expected each knob once')
    .refine(
      (masked) => new Set(masked).size < knobs.length,
      'Expected a knob to be left free: with all of them masked there is nothing to decide',
    )
    .optional();
}

/** A task in a file that cannot be played. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  readonly isInputError = true;
  readonly code = 'INVALID_TASK';
}

/**
 * Reads a task.
 * @param source where it comes from, for the message
 * @throws TaskError that lists what is wrong, field by field
 */
export function parseTask<Schema extends z.ZodType>(
  schema: Schema,
  candidate: unknown,
  source: string,
): z.output<Schema> {
  const reading = schema.safeParse(candidate);
  if (reading.success) return reading.data;
  const problems = reading.error.issues.map(({ path, message }) => `${path.join('.') || 'task'}: ${message}`);
  throw new TaskError(`${source} is no task: ${problems.join('; ')}`);
}
