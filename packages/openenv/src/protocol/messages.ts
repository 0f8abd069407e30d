import { z } from 'zod';

/** JSON-RPC 2.0 error codes that OpenEnv's `/mcp` uses. */
export const JSON_RPC_ERROR_CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  serverError: -32000,
} as const;
export type JsonRpcErrorCode = (typeof JSON_RPC_ERROR_CODES)[keyof typeof JSON_RPC_ERROR_CODES];

export type JsonRpcId = string | number | null;

export type JsonRpcResponse = { readonly jsonrpc: '2.0'; readonly id: JsonRpcId } & (
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data: unknown } }
);

/** The codes of a WebSocket `error` message, as OpenEnv defines them. */
export const ERROR_CODES = [
  'INVALID_JSON',
  'UNKNOWN_TYPE',
  'VALIDATION_ERROR',
  'EXECUTION_ERROR',
  'CAPACITY_REACHED',
  'FACTORY_ERROR',
  'SESSION_ERROR',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/**
 * Messages `{ type, data }` of clients on `/ws`, as text frames of JSON. Each has one reply, of the type `observation`,
 * `state`, `mcp`, `vector` or `error`; `close` has none. `vector_step` has an action for each environment, of which that of
 * an environment whose episode has ended is ignored; its actions may also come as a binary frame of float32.
 */
export type MessageType = 'reset' | 'step' | 'state' | 'close' | 'mcp' | 'vector_reset' | 'vector_step';

/** The `data` of `vector_reset`: many environments that step together. */
export const vectorOptions = z.strictObject({
  /** Number of environments. */
  count: z.int().min(1).max(65_536),
  /** Environment i starts on seed + i. Without one the server draws it. */
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional(),
  /** Further reset options, the same for all. */
  options: z.record(z.string(), z.unknown()).default({}),
  format: z.enum(['json', 'float32']).default('json'),
});

/** A reset or step of many environments, with an entry for each: the `data` of the reply `vector`. */
export interface VectorStep {
  readonly observations: readonly unknown[];
  /** 0 where an episode has just been started. */
  readonly rewards: readonly number[];
  readonly dones: readonly boolean[];
  /** With `float32`: what the numbers of a row mean. */
  readonly layout?: { readonly action: readonly string[]; readonly observation: readonly string[] };
}

/** The `data` of an `error` message. */
export interface ErrorData {
  readonly message: string;
  readonly code: ErrorCode;
  /** With `VALIDATION_ERROR`. */
  readonly errors?: readonly ValidationIssue[];
  /**
   * With `EXECUTION_ERROR`, when the environment names the reason, for instance `EPISODE_OVER`; with `SESSION_ERROR`, when
   * the session could not be kept, for instance `SESSION_DAMAGED`.
   */
  readonly reason?: string;
  /** With `CAPACITY_REACHED`. */
  readonly active_sessions?: number;
  /** With `CAPACITY_REACHED`. */
  readonly max_sessions?: number;
  /** With `FACTORY_ERROR`. */
  readonly factory_name?: string;
}

/** A JSON Schema document (draft 2020-12). */
export interface JsonSchema {
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly items?: JsonSchema;
  readonly maximum?: number;
  readonly minimum?: number;
  readonly oneOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly title?: string;
  readonly type?: string | readonly string[];
  readonly [keyword: string]: unknown;
}

/** `GET /state` and the WebSocket `state` message. The environment's own fields stand beside these two. */
export interface StateBody {
  readonly episode_id: string | null;
  /** Steps since the last reset. */
  readonly step_count: number;
  readonly [field: string]: unknown;
}

/** A value that is only read: its fields and theirs. */
export type ReadonlyDeep<T> = T extends readonly (infer Item)[]
  ? readonly ReadonlyDeep<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: ReadonlyDeep<T[Key]> }
    : T;

const jsonObject = z.custom<Readonly<Record<string, unknown>>>().meta({ type: 'object' });
const jsonSchema = z.custom<JsonSchema>().meta({ type: 'object' });

export const healthBody = z.object({
  status: z.enum(['healthy', 'unhealthy', 'degraded']),
  active_sessions: z.int().min(0),
  uptime_seconds: z.number().min(0),
  reason: z
    .string()
    .optional()
    .describe(
      'Why sessions are not being written, which makes the server degraded, or that capacity was refused',
    ),
});
/** `GET /health`. */
export type HealthBody = ReadonlyDeep<z.infer<typeof healthBody>>;

export const environmentsBody = z.object({
  environments: z.array(
    z.object({
      id: z.string(),
      version: z.string(),
      name: z.string(),
      description: z.string(),
      path: z
        .string()
        .describe('Root of its server, relative to the server that was asked: `./` is that one itself'),
    }),
  ),
});
/** One environment of `GET /environments`, which lists those of the port. */
export type EnvironmentEntry = ReadonlyDeep<z.infer<typeof environmentsBody>>['environments'][number];

export const metadataBody = z.object({
  name: z.string(),
  description: z.string(),
  readme_content: z.string().nullable(),
  version: z.string().nullable(),
  author: z.string().nullable(),
  documentation_url: z.string().nullable(),
});
/** `GET /metadata`. */
export type MetadataBody = ReadonlyDeep<z.infer<typeof metadataBody>>;

export const schemaBody = z.object({
  action: jsonSchema,
  observation: jsonSchema,
  reset_observation: jsonSchema,
  state: jsonSchema,
});
/** `GET /schema`. */
export type SchemaBody = ReadonlyDeep<z.infer<typeof schemaBody>>;

export const tasksBody = z.object({
  tasks: z.array(
    z.looseObject({
      id: z.union([z.string(), z.number()]),
      name: z.string(),
      difficulty: z.enum(['easy', 'medium', 'hard']),
      description: z.string(),
    }),
  ),
  action_schema: jsonSchema,
});
/** `GET /tasks`. */
export type TasksBody = ReadonlyDeep<z.infer<typeof tasksBody>>;

export const gradeBody = z.object({
  score: z.number().gt(0).lt(1),
  breakdown: jsonObject,
  /** One or two sentences a person can act on. */
  feedback: z.string(),
  estimated: z.boolean().optional().describe('True for a score that rests on an estimate'),
  replayed: jsonObject
    .optional()
    .describe(
      'Options of the reset that the actions were replayed on, `seed` and `task_id` among them, less lists and objects',
    ),
});
/** The answer of `POST /grader`. Servers of others may leave out `replayed` and `estimated`. */
export type GradeBody = ReadonlyDeep<z.infer<typeof gradeBody>>;

export const validationIssue = z
  .object({
    type: z
      .string()
      .describe('Stable name of the rule, such as `missing`, `extra_forbidden`, `less_than_equal`'),
    loc: z.array(z.union([z.string(), z.int()])).describe('Path from the root of the input to the value'),
    msg: z.string(),
    input: z
      .unknown()
      .describe('The value that was sent; for `missing` the object that lacks it. A long value is cut'),
    ctx: jsonObject.optional().describe('The limits of the rule, such as `{ "le": 512 }`'),
  })
  .meta({ title: 'ValidationError' });
/** One thing that is wrong with an input, in the words of pydantic, which OpenEnv clients expect. */
export type ValidationIssue = ReadonlyDeep<z.infer<typeof validationIssue>>;

export const errorBody = z
  .object({
    detail: z.union([
      z.string(),
      z
        .custom<readonly ValidationIssue[]>()
        .meta({ type: 'array', items: { $ref: '#/components/schemas/ValidationError' } }),
    ]),
    code: z.string().optional().describe('Stable code, where the text has one'),
  })
  .meta({ title: 'Error' });
/** The body of every HTTP error: text, or the list of what is wrong with the input (status 422). */
export type ErrorBody = ReadonlyDeep<z.infer<typeof errorBody>>;
