import type { ErrorCode } from './error-code.ts';
import type { ObservationBody, StateBody } from './http-body.ts';
import type { JsonRpcRequest, JsonRpcResponse } from './json-rpc.ts';
import type { ValidationIssue } from './validation-issue.ts';

/** What a client may send on `/ws`, as text frames of JSON. */
export type ClientMessage =
  | { readonly type: 'reset'; readonly data?: Readonly<Record<string, unknown>> }
  | { readonly type: 'step'; readonly data: Readonly<Record<string, unknown>> }
  | { readonly type: 'state' }
  | { readonly type: 'close' }
  | { readonly type: 'mcp'; readonly data: JsonRpcRequest };

/** The `data` of an `error` message. */
export interface ErrorData {
  readonly message: string;
  readonly code: ErrorCode;
  /** With `VALIDATION_ERROR`. */
  readonly errors?: readonly ValidationIssue[];
  /** With `EXECUTION_ERROR`, when the environment names the reason, for instance `EPISODE_OVER`. */
  readonly reason?: string;
  /** With `CAPACITY_REACHED`. */
  readonly active_sessions?: number;
  /** With `CAPACITY_REACHED`. */
  readonly max_sessions?: number;
  /** With `FACTORY_ERROR`. */
  readonly factory_name?: string;
}

/** What the server sends on `/ws`: exactly one message for each of the client's, none for `close`. */
export type ServerMessage<Observation = Readonly<Record<string, unknown>>> =
  | { readonly type: 'observation'; readonly data: ObservationBody<Observation> }
  | { readonly type: 'state'; readonly data: StateBody }
  | { readonly type: 'mcp'; readonly data: JsonRpcResponse }
  | { readonly type: 'error'; readonly data: ErrorData };
