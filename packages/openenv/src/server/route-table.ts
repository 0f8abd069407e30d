import type { z } from 'zod';
import type { JsonSchema } from '../protocol/json-schema.ts';

/** A route as the OpenAPI document describes it. */
export interface RouteDescription {
  readonly method: 'get' | 'post' | 'delete';
  /** With parameters in braces, for instance `/{env_name}/splits`. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly query?: readonly { readonly name: string; readonly description: string }[];
  /** Headers that must be there. */
  readonly headers?: readonly { readonly name: string; readonly description: string }[];
  readonly request?: z.ZodType | JsonSchema;
  readonly requestRequired?: boolean;
  /** The JSON of a 200, or its media type when it is not JSON. */
  readonly response: JsonSchema | { readonly mediaType: string };
  /** What each error status means. */
  readonly errors?: Readonly<Record<number, string>>;
  /** The JSON of an error, where it is not `{ detail, code }`. */
  readonly errorBody?: JsonSchema;
  /** Schemas of parameters in the path; without one, any text. */
  readonly parameters?: Readonly<Record<string, JsonSchema>>;
}
