import type { z } from 'zod';
import { isJsonObject } from '../json/read-json.ts';
import type { JsonSchema } from '../protocol/http-body.ts';
import { toJsonSchema } from './json-schemas.ts';
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
