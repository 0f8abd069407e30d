import type { Caller } from '../protocol/definition.ts';
import { errorAnswer } from '../protocol/errors.ts';
import {
  JSON_RPC_ERROR_CODES,
  type JsonRpcErrorCode,
  type JsonRpcId,
  type JsonRpcResponse,
} from '../protocol/messages.ts';
import { isJsonObject } from '../protocol/read-json.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { readClientJson } from '../sessions/turns.ts';
import { type EnvironmentTools, listingsOf, toolCallResult } from './tools.ts';

const { parseError, invalidRequest, methodNotFound, invalidParams, internalError } = JSON_RPC_ERROR_CODES;

/** An error with a code of JSON-RPC, to be thrown. */
function rpcError(rpcCode: JsonRpcErrorCode, message: string): Error {
  return Object.assign(new Error(message), { rpcCode });
}

/**
 * OpenEnv's own JSON-RPC: `tools/list`, `tools/call`, `openenv/session/create` and `openenv/session/close`. Every
 * request gets a response, never an exception.
 */
export class JsonRpcEndpoint {
  readonly #sessions: SessionRegistry;
  readonly #tools: EnvironmentTools;

  constructor(sessions: SessionRegistry, tools: EnvironmentTools) {
    this.#sessions = sessions;
    this.#tools = tools;
  }

  /** Answers the text of a request. `session` is the session of the socket that it came on, if it came on one. */
  async answerText(text: string, session?: Session, caller?: Caller): Promise<JsonRpcResponse> {
    const reading = await readClientJson(text, caller?.name);
    return reading.ok
      ? this.answer(reading.value, session, caller)
      : failure(null, parseError, `Parse error: ${reading.message}`);
  }

  async answer(request: unknown, session?: Session, caller?: Caller): Promise<JsonRpcResponse> {
    const flaw = flawOf(request);
    if (flaw !== undefined) return failure(null, invalidRequest, `Invalid request: ${flaw}`);
    const {
      method,
      params = {},
      id = null,
    } = request as { method: string; params?: unknown; id?: JsonRpcId };
    try {
      if (!isJsonObject(params)) throw rpcError(invalidParams, 'Params must be an object');
      return { jsonrpc: '2.0', id, result: await this.#call(method, params, session, caller) };
    } catch (error) {
      const { jsonRpc, message, details } = errorAnswer(error);
      const { rpcCode = jsonRpc } = error as { rpcCode?: JsonRpcErrorCode };
      return failure(id, rpcCode, message, Object.keys(details).length > 0 ? details : null);
    }
  }

  async #call(
    method: string,
    params: Readonly<Record<string, unknown>>,
    session?: Session,
    caller?: Caller,
  ): Promise<unknown> {
    switch (method) {
      case 'openenv/session/create':
        return { session_id: (session ?? this.#sessions.open(caller?.name)).id };
      case 'openenv/session/close':
        return this.#closeSession(params.session_id, session);
      case 'tools/list':
        await this.#requireKnown(params.session_id, session);
        return { tools: listingsOf(this.#tools) };
      case 'tools/call': {
        if (typeof params.name !== 'string' || params.name === '') {
          throw rpcError(invalidParams, "Missing 'name' in params");
        }
        const known = await this.#requireKnown(params.session_id, session);
        const target = known ?? this.#sessions.open(caller?.name);
        try {
          const tool = this.#tools.get(params.name);
          if (!tool) throw rpcError(internalError, `Unknown tool: '${params.name.slice(0, 100)}'`);
          return toolCallResult(await tool.call(target, params.arguments ?? {}, caller));
        } finally {
          if (!known) this.#sessions.close(target.id).catch(() => {});
        }
      }
      default:
        throw rpcError(methodNotFound, `Method not found: ${method.slice(0, 100)}`);
    }
  }

  async #requireKnown(id: unknown, session: Session | undefined): Promise<Session | undefined> {
    if (session) return session;
    if (id === undefined || id === null || id === '') return undefined;
    const found = typeof id === 'string' ? await this.#sessions.resume(id) : undefined;
    if (!found) throw rpcError(invalidParams, `Unknown session_id: ${String(id).slice(0, 100)}`);
    return found;
  }

  async #closeSession(id: unknown, session: Session | undefined): Promise<unknown> {
    if (typeof id !== 'string' || id === '') {
      throw rpcError(invalidParams, "Invalid params - 'session_id' is required");
    }
    if (session?.id === id) {
      throw rpcError(invalidRequest, 'Cannot close active WebSocket-managed session via MCP method');
    }
    if (this.#sessions.isAttached(id)) {
      this.#sessions.closeOnDetach(id);
      return { session_id: id, closed: false, closing: true };
    }
    if (!(await this.#sessions.close(id))) {
      throw rpcError(invalidParams, `Unknown session_id: ${id.slice(0, 100)}`);
    }
    return { session_id: id, closed: true };
  }
}

function flawOf(request: unknown): string | undefined {
  if (!isJsonObject(request)) return 'expected an object';
  const extra = Object.keys(request).find((key) => !['jsonrpc', 'method', 'params', 'id'].includes(key));
  if (extra !== undefined) return `unexpected key '${extra.slice(0, 100)}'`;
  if (request.jsonrpc !== '2.0') return "expected 'jsonrpc' to be '2.0'";
  if (typeof request.method !== 'string') return "expected 'method' to be a string";
  const { id } = request;
  const validId = id === undefined || id === null || typeof id === 'string' || Number.isInteger(id);
  return validId ? undefined : "expected 'id' to be a string, an integer or null";
}

function failure(
  id: JsonRpcId,
  code: JsonRpcErrorCode,
  message: string,
  data: unknown = null,
): JsonRpcResponse {
  return { jsonrpc: '2.0', id, error: { code, message, data } };
}
