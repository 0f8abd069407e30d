import { z } from 'zod';
import type { EnvironmentDefinition } from './definition.ts';
import type { JsonSchema, SchemaBody } from './messages.ts';
import { isJsonObject } from './read-json.ts';
import { invalidInput, readInput } from './validation-issues.ts';
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
    const offered =
      !ownMetadata && isJsonObject(input) && 'metadata' in input ? withoutMetadata(input) : input;
    return readInput(schema, offered);
  };
}

/** True when an object schema, or one of the alternatives of a union, has a property. */
export function declares(schema: JsonSchema, property: string): boolean {
  return (
    Object.hasOwn(schema.properties ?? {}, property) ||
    [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].some((branch) => declares(branch, property))
  );
}

function withoutMetadata(action: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { metadata, ...rest } = action;
  if (!isJsonObject(metadata)) {
    throw invalidInput('dict_type', ['metadata'], 'Input should be a valid dictionary', metadata);
  }
  return rest;
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

type Properties = Readonly<Record<string, JsonSchema>>;

/**
 * What the wire carries beside the environment's own fields: the `metadata` of every action, for which consumers look as
 * for its `title`; what stands beside an observation; of a state, what the server keeps, and all there is before a reset.
 */
const WIRE_FIELDS: Readonly<Record<keyof typeof wireFields, Properties>> = wireFields;

/** The answer of `GET /schema`. */
export function publishedSchemas({ action, observation, state }: EnvironmentDefinition): SchemaBody {
  const actions = { title: 'Action', ...toJsonSchema(action, 'input') };
  const observations = { title: 'Observation', ...toJsonSchema(observation, 'output') };
  const states = { title: 'State', ...toJsonSchema(state, 'output') };
  const observed = withProperties(observations, WIRE_FIELDS.observation);
  const { required, ...stateSchema } = withProperties(states, WIRE_FIELDS.state);
  return {
    action: withProperties(actions, WIRE_FIELDS.action),
    observation: observed,
    reset_observation: observed,
    state: stateSchema,
  };
}

function withProperties(schema: JsonSchema, added: Properties): JsonSchema {
  if (schema.anyOf || schema.oneOf) {
    const branches = (schema.anyOf ?? schema.oneOf ?? []).map((branch) => withProperties(branch, added));
    return { ...schema, type: 'object', [schema.anyOf ? 'anyOf' : 'oneOf']: branches };
  }
  return { ...schema, type: 'object', properties: { ...added, ...schema.properties } };
}
