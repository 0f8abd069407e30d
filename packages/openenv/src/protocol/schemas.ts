import { z } from 'zod';
import type { EnvironmentDefinition } from './definition.ts';
import type { JsonSchema, SchemaBody } from './messages.ts';
import { isJsonObject } from './read-json.ts';
import { invalidInput, readInput } from './validation-issues.ts';

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

function metadata(description: string): JsonSchema {
  return { type: 'object', additionalProperties: true, title: 'Metadata', description };
}

function nullable(type: 'number' | 'string', title: string, description: string): JsonSchema {
  return { anyOf: [{ type }, { type: 'null' }], default: null, title, description };
}

/** The `metadata` that every action may carry. Consumers look for both `title` and `metadata`. */
const ofActions: Properties = { metadata: metadata('Additional metadata for the action') };
/** The fields that the wire carries beside an observation. */
const ofObservations: Properties = {
  done: { type: 'boolean', default: false, title: 'Done', description: 'Whether the episode has terminated' },
  reward: nullable('number', 'Reward', 'Reward signal from the last action'),
  metadata: metadata('Additional metadata for the observation'),
};
const STEP_COUNT = 'Number of steps taken in the current episode';
/** The two fields of a state that the server keeps. Before the first reset there are only those. */
const ofStates: Properties = {
  episode_id: nullable('string', 'Episode Id', 'Unique identifier for the current episode'),
  step_count: { type: 'integer', minimum: 0, default: 0, title: 'Step Count', description: STEP_COUNT },
};

/** The answer of `GET /schema`. */
export function publishedSchemas({
  action,
  observation,
  state,
}: EnvironmentDefinition<unknown, unknown, unknown>): SchemaBody {
  const observed = withProperties(
    { title: 'Observation', ...toJsonSchema(observation, 'output') },
    ofObservations,
  );
  const { required, ...stateSchema } = withProperties(
    { title: 'State', ...toJsonSchema(state, 'output') },
    ofStates,
  );
  return {
    action: withProperties({ title: 'Action', ...toJsonSchema(action, 'input') }, ofActions),
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
