import { z } from 'zod';
import type { ResetOptions } from '../definition.ts';
import { InvalidInputError } from './invalid-input-error.ts';
import { validationIssues } from './validation-issues.ts';

/** Turns what a client sent into reset options, or throws `InvalidInputError`. */
export type ResetOptionsReader = (input: unknown) => ResetOptions;

/** Seeds that the server draws are below this, so that 32-bit generators can take them. */
const DRAWN_SEEDS = 2 ** 32;

/** The two options that every environment has. `null` is the same as absent, as Python clients send it. */
export const commonResetOptions = z.object({
  seed: z.int().min(0).nullish().meta({ description: 'Random seed for reproducible episodes' }),
  episode_id: z.string().max(255).nullish().meta({ description: 'Custom episode identifier' }),
});

/**
 * Reads `seed`, `episode_id` and the options that the environment declares; other keys are ignored, as OpenEnv does.
 * The seed is always there afterwards: the client's, else the default of the environment's schema, else `drawSeed()`.
 */
export function resetOptionsReader(
  ownOptions: z.ZodObject | undefined,
  drawSeed: () => number = () => Math.floor(Math.random() * DRAWN_SEEDS),
): ResetOptionsReader {
  const schema = commonResetOptions.extend(ownOptions?.shape ?? {});
  return function readResetOptions(input) {
    const offered = withoutNulls(input ?? {}, schema.shape);
    const reading = schema.safeParse(offered);
    if (!reading.success) throw new InvalidInputError(validationIssues(reading.error.issues, offered));
    const { seed, episode_id, ...own } = reading.data as Record<string, unknown>;
    return {
      ...own,
      seed: typeof seed === 'number' ? seed : drawSeed(),
      ...(typeof episode_id === 'string' && { episode_id }),
    };
  };
}

/** A declared option that is null counts as absent, unless its schema takes null. */
function withoutNulls(input: unknown, shape: Readonly<Record<string, z.core.$ZodType>>): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input;
  return Object.fromEntries(
    Object.entries(input).filter(
      ([name, value]) =>
        value !== null || !Object.hasOwn(shape, name) || z.safeParse(shape[name]!, null).success,
    ),
  );
}
