import { z } from 'zod';
import {
  type EnvironmentDefinition,
  EnvironmentError,
  type ResetOptions,
  type TaskSplit,
} from '../definition.ts';
import { isJsonObject } from '../json/json-object.ts';
import { InvalidInputError } from './invalid-input-error.ts';
import { validationIssues } from './validation-issues.ts';

/** Turns what a client sent into reset options, or throws `InvalidInputError`. */
export type ResetOptionsReader = (input: unknown) => ResetOptions;

/** Seeds that the server draws are below this, so that 32-bit generators can take them. */
const DRAWN_SEEDS = 2 ** 32;

/** The two options that every environment has. `null` is the same as absent, as Python clients send it. */
const commonOptions = z.object({
  seed: z.int().min(0).nullish().meta({ description: 'Random seed for reproducible episodes' }),
  episode_id: z.string().max(255).nullish().meta({ description: 'Custom episode identifier' }),
});

type Options = Pick<EnvironmentDefinition, 'resetOptions' | 'splits'>;

/** The schema of all options that `reset` takes. */
export function resetOptionsSchema({ resetOptions, splits }: Options): z.ZodObject {
  const schema = commonOptions.extend(resetOptions?.shape ?? {});
  return splits ? schema.extend(taskOptions(splits).shape) : schema;
}

/**
 * Reads `seed`, `episode_id`, the options that the environment declares and, where it has splits, a task by `split` and
 * `index`; other keys are ignored, as OpenEnv does. An option that is sent beside a task wins over the task's. The seed
 * is always there afterwards: the client's, else the task's or the schema's default, else `drawSeed()`.
 * A task that a split does not have is an `EnvironmentError`.
 */
export function resetOptionsReader(
  options: Options,
  drawSeed: () => number = () => Math.floor(Math.random() * DRAWN_SEEDS),
): ResetOptionsReader {
  const schema = commonOptions.extend(options.resetOptions?.shape ?? {});
  const { splits } = options;
  return function readResetOptions(input) {
    const offered = withoutNulls(input ?? {}, schema.shape);
    const chosen = splits ? withTask(offered, splits) : offered;
    const reading = schema.safeParse(chosen);
    if (!reading.success) throw new InvalidInputError(validationIssues(schema, chosen));
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
  if (!isJsonObject(input)) return input;
  return Object.fromEntries(
    Object.entries(input).filter(
      ([name, value]) =>
        value !== null || !Object.hasOwn(shape, name) || z.safeParse(shape[name]!, null).success,
    ),
  );
}

function taskOptions(splits: readonly TaskSplit[]) {
  return z.object({
    split: z
      .enum(splits.map(({ name }) => name))
      .nullish()
      .meta({ description: 'Play a task of this split' }),
    index: z.int().min(0).nullish().meta({ description: 'Which task of the split; 0 without' }),
  });
}

function withTask(input: unknown, splits: readonly TaskSplit[]): unknown {
  if (!isJsonObject(input)) return input;
  const { split: name, index, ...rest } = input;
  const taskSchema = taskOptions(splits);
  const reading = taskSchema.safeParse({ split: name, index });
  if (!reading.success) throw new InvalidInputError(validationIssues(taskSchema, { split: name, index }));
  const split = splits.find((candidate) => candidate.name === name);
  if (!split) return rest;
  const chosen = reading.data.index ?? 0;
  if (chosen >= split.size) {
    throw new EnvironmentError(
      'UNKNOWN_TASK',
      `The split '${split.name}' has ${split.size} tasks, 0 to ${split.size - 1}; there is no task ${chosen}.`,
    );
  }
  return { ...split.task(chosen), ...rest };
}
