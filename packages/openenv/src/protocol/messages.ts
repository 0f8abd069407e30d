import { z } from 'zod';
import type { ValidationIssue } from './bodies.ts';

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

/** A tool as `tools/list` shows it. The schema is there twice: clients differ in the spelling that they read. */
export interface ToolListing {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input_schema: Readonly<Record<string, unknown>>;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** The result of `tools/call`. */
export interface ToolCallResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[];
  readonly structured_content: unknown;
  readonly structuredContent: unknown;
  /** The plain value; the Python client returns this. */
  readonly data: unknown;
  readonly is_error: boolean;
  readonly isError: boolean;
}

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
export type VectorOptions = Readonly<z.input<typeof vectorOptions>>;

/** A reset or step of many environments, with an entry for each: the `data` of the reply `vector`. */
export interface VectorStep<Observation = unknown> {
  readonly observations: readonly Observation[];
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
