import { z } from 'zod';
import type { EnvironmentDefinition, EnvironmentError } from './definition.ts';
import { errorAnswer, errorCode, openEnvError } from './errors.ts';
import type { JsonSchema, SchemaBody, ValidationIssue } from './messages.ts';
import { isJsonObject, isLongerThan } from './read-json.ts';
import wireFields from './wire-fields.json' with { type: 'json' };

/** Turns what a client sent into an action, or throws EnvironmentError `VALIDATION_ERROR`. */
export type ActionReader<Action> = (input: unknown) => Action;

/**
 * OpenEnv's Python clients put a `metadata` object into every action. It is accepted and ignored unless the
 * environment's own schema has such a field.
 */
export function actionReader<Action>(schema: z.ZodType<Action>): ActionReader<Action> {
  const ownMetadata = declares(toJsonSchema(schema, 'input'), 'metadata');
  return function readAction(input) {
    if (ownMetadata || !isJsonObject(input) || !('metadata' in input)) return readInput(schema, input);
    const { metadata, ...rest } = input;
    if (isJsonObject(metadata)) return readInput(schema, rest);
    throw invalidInput('dict_type', ['metadata'], 'Input should be a valid dictionary', metadata);
  };
}

/** True when an object schema, or one of the alternatives of a union, has a property. */
export function declares(schema: JsonSchema, property: string): boolean {
  return (
    Object.hasOwn(schema.properties ?? {}, property) ||
    [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].some((branch) => declares(branch, property))
  );
}

/**
 * The JSON Schema of what a zod schema takes (`input`) or gives (`output`). An `answer` is an output whose objects may
 * have further fields, but for strict ones.
 */
export function toJsonSchema(schema: z.ZodType, side: 'input' | 'output' | 'answer'): JsonSchema {
  const { $schema, ...document } = z.toJSONSchema(schema, {
    io: side === 'input' ? 'input' : 'output',
    unrepresentable: 'any',
    override({ jsonSchema, zodSchema }) {
      const { def } = zodSchema._zod;
      if (side === 'answer' && def.type === 'object' && !('catchall' in def && def.catchall)) {
        delete jsonSchema.additionalProperties;
      }
      // Of what is given, bounds that hold for every integer say nothing; of what is taken, they are enforced.
      if (side !== 'input') {
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      }
      // The keys of JSON objects are strings in any case.
      if (Object.keys(jsonSchema.propertyNames ?? {}).join() === 'type') delete jsonSchema.propertyNames;
      for (const [name, property] of Object.entries(jsonSchema.properties ?? {})) {
        if (typeof property === 'object') property.title ??= titleOf(name);
      }
    },
  });
  return document as JsonSchema;
}

/** `batch_cap` is shown as `Batch Cap`, as pydantic does. */
function titleOf(name: string): string {
  return name
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
}

/**
 * The answer of `GET /schema`. `wireFields` are what the wire carries beside the environment's own fields: the `metadata` of every
 * action, for which consumers look as for its `title`; what stands beside an observation; of a state, what the server keeps,
 * and all there is before a reset.
 */
export function publishedSchemas({ action, observation, state }: EnvironmentDefinition): SchemaBody {
  const actions = { title: 'Action', ...toJsonSchema(action, 'input') };
  const observations = { title: 'Observation', ...toJsonSchema(observation, 'output') };
  const states = { title: 'State', ...toJsonSchema(state, 'output') };
  const observed = withProperties(observations, wireFields.observation);
  const { required, ...stateSchema } = withProperties(states, wireFields.state);
  return {
    action: withProperties(actions, wireFields.action),
    observation: observed,
    reset_observation: observed,
    state: stateSchema,
  };
}

function withProperties(schema: JsonSchema, added: JsonSchema['properties']): JsonSchema {
  if (schema.anyOf || schema.oneOf) {
    const branches = (schema.anyOf ?? schema.oneOf ?? []).map((branch) => withProperties(branch, added));
    return { ...schema, type: 'object', [schema.anyOf ? 'anyOf' : 'oneOf']: branches };
  }
  return { ...schema, type: 'object', properties: { ...added, ...schema.properties } };
}

/** An input that breaks one rule. A long `input` is cut. */
export function invalidInput(
  type: string,
  loc: ValidationIssue['loc'],
  msg: string,
  input: unknown = null,
  ctx?: ValidationIssue['ctx'],
): EnvironmentError {
  return openEnvError('VALIDATION_ERROR', { issues: [issueOf({ type, msg, ctx }, loc, input)] });
}

/** Reads an input by a schema. @throws EnvironmentError `VALIDATION_ERROR` naming each place, with `path` at its head */
export function readInput<T>(schema: z.ZodType<T>, input: unknown, ...path: (string | number)[]): T {
  const reading = schema.safeParse(input, MARKED);
  if (reading.success) return reading.data;
  const issues: ValidationIssue[] = [];
  for (const issue of issuesIn(reading.error.issues, input)) if (issues.push(issue) === MAX_ISSUES) break;
  throw invalidAt(path, issues);
}

/** Reads a part of a larger input, in which it stands at `path`. @throws EnvironmentError with places in the larger one */
export function readAt<T>(path: readonly (string | number)[], read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (errorCode(error) !== 'VALIDATION_ERROR') throw error;
    throw invalidAt(path, errorAnswer(error).issues);
  }
}

function invalidAt(path: readonly (string | number)[], issues: readonly ValidationIssue[]): EnvironmentError {
  return openEnvError('VALIDATION_ERROR', {
    issues: issues.map((issue) => ({ ...issue, loc: [...path, ...issue.loc] })),
  });
}

/** An answer lists at most this many issues, so that a hostile input cannot make it huge. */
const MAX_ISSUES = 50;

type ZodIssue = z.core.$ZodIssue;
type Bounded = { readonly origin: string; readonly inclusive?: boolean };
type Rule = Pick<ValidationIssue, 'type' | 'msg' | 'ctx'>;

/** zod says of an integer that a number was expected; pydantic is more exact. */
const INTEGER_EXPECTED = 'expected integer';

const MARKED = {
  error({ code, inst }: z.core.$ZodRawIssue): string | undefined {
    const format = (inst as { _zod?: { def?: { format?: string } } } | undefined)?._zod?.def?.format;
    return code === 'invalid_type' && format?.endsWith('int') ? INTEGER_EXPECTED : undefined;
  },
};

/** Issues of a value that a schema refuses, in pydantic's words. */
function* issuesIn(
  issues: readonly ZodIssue[],
  input: unknown,
  above: ValidationIssue['loc'] = [],
): Generator<ValidationIssue> {
  for (const issue of issues) {
    const loc = [...above, ...issue.path.map((key) => (typeof key === 'number' ? key : String(key)))];
    const { value, parent } = valueAt(input, loc);
    if (issue.code === 'unrecognized_keys') {
      const fields = value as Record<string, unknown> | undefined;
      for (const key of issue.keys) yield issueOf(EXTRA, [...loc, key], fields?.[key]);
    } else if (issue.code === 'invalid_union' && issue.errors.length > 0) {
      for (const branch of issue.errors) yield* issuesIn(branch, input, loc);
    } else if (value === undefined && issue.code !== 'custom') {
      yield issueOf(MISSING, loc, parent);
    } else {
      yield issueOf(ruleOf(issue, value), loc, value);
    }
  }
}

const EXTRA: Rule = { type: 'extra_forbidden', msg: 'Extra inputs are not permitted' };
const MISSING: Rule = { type: 'missing', msg: 'Field required' };

/** A long `input` is cut. */
function issueOf({ type, msg, ctx }: Rule, loc: ValidationIssue['loc'], input: unknown): ValidationIssue {
  return { type, loc, msg, input: excerpt(input), ...(ctx && { ctx }) };
}

function ruleOf(issue: ZodIssue, value: unknown): Rule {
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue.message === INTEGER_EXPECTED ? 'int' : issue.expected, value);
    case 'too_small':
      return beyond('least', issue, Number(issue.minimum), value);
    case 'too_big':
      return beyond('most', issue, Number(issue.maximum), value);
    case 'not_multiple_of': {
      const msg = `Input should be a multiple of ${issue.divisor}`;
      return { type: 'multiple_of', msg, ctx: { multiple_of: issue.divisor } };
    }
    case 'invalid_value': {
      const expected = alternatives(issue.values);
      return { type: 'literal_error', msg: `Input should be ${expected}`, ctx: { expected } };
    }
    case 'invalid_format': {
      const { pattern } = issue;
      if (pattern === undefined) return { type: 'value_error', msg: `Value error, ${issue.message}` };
      const msg = `String should match pattern '${pattern}'`;
      return { type: 'string_pattern_mismatch', msg, ctx: { pattern } };
    }
    case 'invalid_union':
      return { type: 'union_tag_invalid', msg: issue.message };
    default:
      return { type: 'value_error', msg: `Value error, ${issue.message}` };
  }
}

const TYPE_RULES: Readonly<Record<string, Rule>> = {
  array: { type: 'list_type', msg: 'Input should be a valid list' },
  boolean: { type: 'bool_type', msg: 'Input should be a valid boolean' },
  int: { type: 'int_type', msg: 'Input should be a valid integer' },
  null: { type: 'none_required', msg: 'Input should be None' },
  number: { type: 'float_type', msg: 'Input should be a valid number' },
  object: { type: 'dict_type', msg: 'Input should be a valid dictionary' },
  record: { type: 'dict_type', msg: 'Input should be a valid dictionary' },
  string: { type: 'string_type', msg: 'Input should be a valid string' },
};

function wrongType(expected: string, value: unknown): Rule {
  if (typeof value === 'number' && (expected === 'number' || expected === 'int')) {
    if (!Number.isFinite(value)) return { type: 'finite_number', msg: 'Input should be a finite number' };
    const msg = 'Input should be a valid integer, got a number with a fractional part';
    return { type: 'int_from_float', msg };
  }
  return TYPE_RULES[expected] ?? { type: 'value_error', msg: `Value error, expected ${expected}` };
}

/** A value beyond a limit: a number, a text by its length, or a list by its items. */
function beyond(side: 'least' | 'most', { origin, inclusive }: Bounded, limit: number, value: unknown): Rule {
  const isLeast = side === 'least';
  if (['number', 'int', 'bigint'].includes(origin)) {
    const than = isLeast ? 'greater than' : 'less than';
    const isInclusive = inclusive !== false;
    return {
      type: `${than.replace(' ', '_')}${isInclusive ? '_equal' : ''}`,
      msg: `Input should be ${than} ${isInclusive ? 'or equal to ' : ''}${limit}`,
      ctx: { [`${than[0]}${isInclusive ? 'e' : 't'}`]: limit },
    };
  }
  const ctx = { [isLeast ? 'min_length' : 'max_length']: limit };
  if (origin === 'string') {
    const msg = `String should have at ${side} ${plural(limit, 'character')}`;
    return { type: `string_too_${isLeast ? 'short' : 'long'}`, msg, ctx };
  }
  const length = Array.isArray(value) ? value.length : 0;
  return {
    type: isLeast ? 'too_short' : 'too_long',
    msg: `List should have at ${side} ${plural(limit, 'item')} after validation, not ${length}`,
    ctx: { field_type: 'List', ...ctx, actual_length: length },
  };
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `'a', 'b' or 'c'`, as pydantic writes a list of literals. */
function alternatives(values: readonly unknown[]): string {
  const shown = values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value)));
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`;
}

function valueAt(input: unknown, loc: readonly (string | number)[]): { value: unknown; parent: unknown } {
  let parent: unknown;
  let value = input;
  for (const key of loc) {
    parent = value;
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string | number, unknown>)[key]
        : undefined;
  }
  return { value, parent };
}

/** An echoed input is cut when its JSON would be longer than about this many characters. */
const MAX_ECHO_LENGTH = 2000;
const MAX_STRING_LENGTH = 500;

/** The value itself when it is short; otherwise a text that says what it was. Looks at no more than it has to. */
export function excerpt(value: unknown): unknown {
  if (typeof value === 'string' && value.length > MAX_STRING_LENGTH) {
    return `${value.slice(0, MAX_STRING_LENGTH)}… (${value.length} characters)`;
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (!isLongerThan(value, MAX_ECHO_LENGTH)) return value;
  return `(too long to repeat: ${Array.isArray(value) ? `a list of ${value.length}` : 'an object'})`;
}
