import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  type EnvironmentDefinition,
  EnvironmentError,
  type ResetOptions,
  type TaskSplit,
} from './definition.ts';
import { isJsonObject, type JsonObject } from './read-json.ts';
import { excerpt, invalidInput, readInput } from './schemas.ts';

/** Turns what a client sent into reset options, or throws EnvironmentError `VALIDATION_ERROR`. */
export type ResetOptionsReader = (input: unknown) => ResetOptions;

/** Seeds that the server draws are below this, so that 32-bit generators can take them. */
const DRAWN_SEEDS = 2 ** 32;

/** The two options that every environment has. `null` is the same as absent, as Python clients send it. */
const commonOptions = z.object({
  seed: z.int().min(0).nullish().describe('Random seed for reproducible episodes'),
  episode_id: z.string().max(255).nullish().describe('Custom episode identifier'),
});

type Options = Pick<EnvironmentDefinition, 'resetOptions' | 'splits'>;

export function resetOptionsSchema({ resetOptions, splits }: Options): z.ZodObject {
  const schema = allOptions(resetOptions);
  return splits ? schema.extend(taskOptions(splits).shape) : schema;
}

/** The environment's options beside the common ones. Others are refused, unless its own are a `z.looseObject`. */
function allOptions(own: Options['resetOptions']): z.ZodObject {
  return commonOptions.extend(own?.shape ?? {}).catchall(own?.def.catchall ?? z.never());
}

/**
 * Reads `seed`, `episode_id`, the options that the environment declares and, where it has splits, a task by `split` and
 * `index`. Others are refused by a sentence that names those that there are, unless the declared object is loose: OpenEnv's own
 * server drops them, and plays something else than was asked for. The seed is always there afterwards: the client's, else
 * the task's or the schema's default, else one that is drawn. A task that a split does not have is an `EnvironmentError`
 * `UNKNOWN_TASK`, and an option that says otherwise than the task beside it is `CONFLICTING_OPTIONS`.
 */
export function resetOptionsReader(options: Options): ResetOptionsReader {
  const readOptions = givenOptionsReader(options);
  return function readResetOptions(input) {
    const { seed, episode_id, ...own } = readOptions(input).options;
    return {
      ...own,
      seed: typeof seed === 'number' ? seed : Math.floor(Math.random() * DRAWN_SEEDS),
      ...(typeof episode_id === 'string' && { episode_id }),
    };
  };
}

/** Options of a reset as they were sent. */
export interface GivenOptions {
  /** With the schema's defaults. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Options that were sent, outright or as a task of a split; the others are defaults. */
  readonly given: ReadonlySet<string>;
}

/** Like `resetOptionsReader`, but draws no seed and tells what was sent from defaults. */
export function givenOptionsReader(options: Options): (input: unknown) => GivenOptions {
  const schema = allOptions(options.resetOptions);
  const { shape: known } = resetOptionsSchema(options);
  const isStrict = schema.def.catchall instanceof z.ZodNever;
  const { splits } = options;
  return function readGivenOptions(input) {
    const offered = withoutNulls(input ?? {}, schema.shape);
    const chosen = splits ? withTask(offered, splits, schema.shape) : offered;
    for (const name in chosen as object) {
      if (!isStrict || Object.hasOwn(known, name)) continue;
      const expected = `Extra inputs are not permitted: a reset takes ${Object.keys(known).join(', ')}`;
      throw invalidInput('extra_forbidden', [name], expected, (chosen as JsonObject)[name]);
    }
    return { options: readInput(schema, chosen), given: new Set(Object.keys(chosen as JsonObject)) };
  };
}

/** An option that is null counts as absent, unless it is the environment's own and its schema takes null. */
function withoutNulls(input: unknown, shape: Readonly<Record<string, z.core.$ZodType>>): unknown {
  if (!isJsonObject(input)) return input;
  const takesNull = (name: string) =>
    !Object.hasOwn(commonOptions.shape, name) &&
    Object.hasOwn(shape, name) &&
    z.safeParse(shape[name], null).success;
  const given = Object.entries(input).filter(([name, value]) => value !== null || takesNull(name));
  return Object.fromEntries(given);
}

function taskOptions(splits: readonly TaskSplit[]) {
  return z.object({
    split: z
      .enum(splits.map(({ name }) => name))
      .nullish()
      .describe('Play a task of this split'),
    index: z.int().min(0).nullish().describe('Which task of the split; 0 without'),
  });
}

function withTask(
  input: unknown,
  splits: readonly TaskSplit[],
  shape: Readonly<Record<string, z.core.$ZodType>>,
): unknown {
  if (!isJsonObject(input)) return input;
  const { split: name, index, ...rest } = input;
  const { index: asked } = readInput(taskOptions(splits), { split: name, index });
  const split = splits.find((candidate) => candidate.name === name);
  if (!split) {
    if (typeof index !== 'number') return rest;
    const known = splits.map((candidate) => candidate.name).join(', ');
    const expected = `Field required beside index: one of ${known}`;
    throw invalidInput('missing', ['split'], expected, { index });
  }
  const chosen = asked ?? 0;
  if (chosen >= split.size) {
    const has = `has ${split.size} tasks, 0 to ${split.size - 1}; there is no task ${chosen}.`;
    throw new EnvironmentError('UNKNOWN_TASK', `The split '${split.name}' ${has}`);
  }
  const task = split.task(chosen);
  for (const [option, value] of Object.entries(task)) {
    if (!Object.hasOwn(rest, option) || meansTheSame(shape[option], rest[option], value)) continue;
    const problem = `Task ${chosen} of the split '${split.name}' has ${option} ${shown(value)}, but ${option} ${shown(rest[option])} was sent beside it: leave out ${option}, or \`split\` and \`index\`.`;
    throw new EnvironmentError('CONFLICTING_OPTIONS', problem);
  }
  return { ...task, ...rest };
}

/** True when both are read as the same value. A value that cannot be read is refused later. */
function meansTheSame(schema: z.core.$ZodType | undefined, sent: unknown, value: unknown): boolean {
  if (schema === undefined) return true;
  const reading = z.safeParse(schema, sent);
  return !reading.success || isDeepStrictEqual(reading.data, z.parse(schema, value));
}

function shown(value: unknown): string {
  return JSON.stringify(excerpt(value));
}
