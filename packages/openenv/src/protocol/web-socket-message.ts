import type { ObservationBody, StateBody, ValidationIssue } from './http-body.ts';
import type { JsonRpcRequest, JsonRpcResponse } from './json-rpc.ts';

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

/** Messages of clients on `/ws`, as text frames of JSON. */
export type ClientMessage =
  | { readonly type: 'reset'; readonly data?: Readonly<Record<string, unknown>> }
  | { readonly type: 'step'; readonly data: Readonly<Record<string, unknown>> }
  | { readonly type: 'state' }
  | { readonly type: 'close' }
  | { readonly type: 'mcp'; readonly data: JsonRpcRequest };

/** Further messages of clients of the vector extension. Actions may also come as binary frames of float32. */
export type VectorClientMessage =
  | {
      readonly type: 'vector_reset';
      readonly data: {
        /** Number of environments, 1 to 65,536. */
        readonly count: number;
        /** Environment i starts on seed + i. Without one the server draws it. */
        readonly seed?: number;
        /** Further reset options, the same for all. */
        readonly options?: Readonly<Record<string, unknown>>;
        /** Default `json`. */
        readonly format?: 'json' | 'float32';
      };
    }
  | {
      readonly type: 'vector_step';
      /** An action for each environment; that of an environment whose episode has ended is ignored. */
      readonly data: { readonly actions: readonly unknown[] };
    };

/** The reply to `vector_reset`, and to `vector_step` in JSON. */
export interface VectorMessage {
  readonly type: 'vector';
  readonly data: {
    readonly observations: readonly Readonly<Record<string, unknown>>[];
    /** 0 where an episode has just been started. */
    readonly rewards: readonly number[];
    readonly dones: readonly boolean[];
    /** With `float32`: what the numbers of a row mean. */
    readonly layout?: { readonly action: readonly string[]; readonly observation: readonly string[] };
  };
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

/** Messages of the server on `/ws`: exactly one for each of the client's, none for `close`. */
export type ServerMessage<Observation = Readonly<Record<string, unknown>>> =
  | { readonly type: 'observation'; readonly data: ObservationBody<Observation> }
  | { readonly type: 'state'; readonly data: StateBody }
  | { readonly type: 'mcp'; readonly data: JsonRpcResponse }
  | { readonly type: 'error'; readonly data: ErrorData };
