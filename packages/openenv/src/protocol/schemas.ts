import { z } from 'zod';
import type { JsonSchema, SchemaBody } from './bodies.ts';
import type { EnvironmentDefinition } from './definition.ts';
import { isJsonObject } from './read-json.ts';
import { InvalidInputError, readInput } from './validation-issues.ts';

/** Turns what a client sent into an action, or throws `InvalidInputError`. */
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
    throw InvalidInputError.of('dict_type', ['metadata'], 'Input should be a valid dictionary', metadata);
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

/** The answer of `GET /schema`. */
export function publishedSchemas(definition: EnvironmentDefinition<unknown, unknown, unknown>): SchemaBody {
  const observation = observationSchema(toJsonSchema(definition.observation, 'output'));
  return {
    action: actionSchema(toJsonSchema(definition.action, 'input')),
    observation,
    reset_observation: observation,
    state: stateSchema(toJsonSchema(definition.state, 'output')),
  };
}

/** The action with the `metadata` that every action may carry. Consumers look for both `title` and `metadata`. */
function actionSchema(schema: JsonSchema): JsonSchema {
  return withProperties(
    { title: 'Action', ...schema },
    {
      metadata: {
        additionalProperties: true,
        description: 'Additional metadata for the action',
        title: 'Metadata',
        type: 'object',
      },
    },
  );
}

/** The observation with the fields that the wire carries beside it. */
function observationSchema(schema: JsonSchema): JsonSchema {
  return withProperties(
    { title: 'Observation', ...schema },
    {
      done: {
        default: false,
        description: 'Whether the episode has terminated',
        title: 'Done',
        type: 'boolean',
      },
      reward: {
        anyOf: [{ type: 'number' }, { type: 'null' }],
        default: null,
        description: 'Reward signal from the last action',
        title: 'Reward',
      },
      metadata: {
        additionalProperties: true,
        description: 'Additional metadata for the observation',
        title: 'Metadata',
        type: 'object',
      },
    },
  );
}

/** The state with the two fields that the server keeps. Before the first reset there are only those. */
function stateSchema(schema: JsonSchema): JsonSchema {
  const { required, ...own } = withProperties(
    { title: 'State', ...schema },
    {
      episode_id: {
        anyOf: [{ type: 'string' }, { type: 'null' }],
        default: null,
        description: 'Unique identifier for the current episode',
        title: 'Episode Id',
      },
      step_count: {
        default: 0,
        description: 'Number of steps taken in the current episode',
        minimum: 0,
        title: 'Step Count',
        type: 'integer',
      },
    },
  );
  return own;
}

function withProperties(schema: JsonSchema, added: Readonly<Record<string, JsonSchema>>): JsonSchema {
  if (schema.anyOf || schema.oneOf) {
    const branches = (schema.anyOf ?? schema.oneOf ?? []).map((branch) => withProperties(branch, added));
    return { ...schema, type: 'object', [schema.anyOf ? 'anyOf' : 'oneOf']: branches };
  }
  return { ...schema, type: 'object', properties: { ...added, ...schema.properties } };
}
