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

export interface JsonRpcRequest {
  readonly jsonrpc: '2.0';
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly id?: JsonRpcId;
}

export interface JsonRpcError {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

export type JsonRpcResponse =
  | { readonly jsonrpc: '2.0'; readonly id: JsonRpcId; readonly result: unknown }
  | { readonly jsonrpc: '2.0'; readonly id: JsonRpcId; readonly error: JsonRpcError };

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
