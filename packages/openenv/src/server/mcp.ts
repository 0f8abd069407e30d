import { type CallToolResult, createMcpHandler, Server } from '@modelcontextprotocol/server';
import type { Context } from 'hono';
import { z } from 'zod';
import { type Caller, EnvironmentError } from '../protocol/definition.ts';
import { type ErrorAnswer, errorAnswer, missingSession } from '../protocol/errors.ts';
import {
  JSON_RPC_ERROR_CODES,
  type JsonRpcErrorCode,
  type JsonRpcId,
  type JsonRpcResponse,
} from '../protocol/messages.ts';
import { isJsonObject, type JsonObject } from '../protocol/read-json.ts';
import { madeAt } from '../protocol/session-id.ts';
import { readClientJson } from '../sessions/off-loop.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import type { ServerParts } from './create-server.ts';
import { type AddRoute, bodyBytes, described, jsonValue } from './route-table.ts';
import {
  type EnvironmentTool,
  type EnvironmentTools,
  listingsOf,
  toolCallResult,
  toolContent,
} from './tools.ts';

const { parseError, invalidRequest, methodNotFound, invalidParams, internalError } = JSON_RPC_ERROR_CODES;

function rpcError(rpcCode: JsonRpcErrorCode, message: string): Error {
  return Object.assign(new Error(message), { rpcCode });
}

/** Who sent a request, and the session of the socket that it came on, if it came on one. */
type Sender = { readonly caller: Caller; readonly session?: Session };

/**
 * OpenEnv's own JSON-RPC: `tools/list`, `tools/call`, `openenv/session/create` and `openenv/session/close`. Every
 * request gets a response, never an exception.
 */
export function jsonRpcEndpoint(sessions: SessionRegistry, tools: EnvironmentTools) {
  return { answer, answerBytes };

  async function answerBytes(bytes: Uint8Array, from: Sender): Promise<JsonRpcResponse> {
    const reading = await readClientJson(bytes, from.caller.name);
    return reading.ok
      ? answer(reading.value, from)
      : failure(null, parseError, `Parse error: ${reading.message}`);
  }

  async function answer(request: unknown, from: Sender): Promise<JsonRpcResponse> {
    const flaw = flawOf(request);
    if (flaw !== undefined) return failure(null, invalidRequest, `Invalid request: ${flaw}`);
    const {
      method,
      params = {},
      id = null,
    } = request as { method: string; params?: unknown; id?: JsonRpcId };
    try {
      if (!isJsonObject(params)) throw rpcError(invalidParams, 'Params must be an object');
      return { jsonrpc: '2.0', id, result: await call(method, params, from) };
    } catch (error) {
      const { jsonRpc, message, details } = errorAnswer(error);
      const { rpcCode = jsonRpc } = error as { rpcCode?: JsonRpcErrorCode };
      return failure(id, rpcCode, message, Object.keys(details).length > 0 ? details : null);
    }
  }

  async function call(method: string, params: JsonObject, { session, caller }: Sender): Promise<unknown> {
    switch (method) {
      case 'openenv/session/create':
        return { session_id: (session ?? sessions.open(caller.name)).id };
      case 'openenv/session/close':
        return closeSession(params.session_id, session);
      case 'tools/list':
        await requireKnown(params.session_id, session);
        return { tools: listingsOf(tools) };
      case 'tools/call': {
        if (typeof params.name !== 'string' || params.name === '') {
          throw rpcError(invalidParams, "Missing 'name' in params");
        }
        const known = await requireKnown(params.session_id, session);
        const target = known ?? sessions.open(caller.name);
        try {
          const tool = tools.get(params.name);
          if (!tool) throw rpcError(internalError, `Unknown tool: '${params.name.slice(0, 100)}'`);
          return toolCallResult(await tool.call(target, params.arguments ?? {}, caller));
        } finally {
          if (!known) sessions.close(target.id).catch(() => {});
        }
      }
      default:
        throw rpcError(methodNotFound, `Method not found: ${method.slice(0, 100)}`);
    }
  }

  async function requireKnown(id: unknown, session: Session | undefined): Promise<Session | undefined> {
    if (session) return session;
    if (id === undefined || id === null || id === '') return undefined;
    const found = typeof id === 'string' ? await sessions.resume(id) : undefined;
    if (!found) throw rpcError(invalidParams, missing(String(id)));
    return found;
  }

  async function closeSession(id: unknown, session: Session | undefined): Promise<unknown> {
    if (typeof id !== 'string' || id === '') {
      throw rpcError(invalidParams, "Invalid params - 'session_id' is required");
    }
    if (session?.id === id) {
      throw rpcError(invalidRequest, 'Cannot close active WebSocket-managed session via MCP method');
    }
    const live = sessions.find(id);
    if (live?.isAttached) {
      live.closesOnDetach = true;
      return { session_id: id, closed: false, closing: true };
    }
    if (!(await sessions.close(id))) throw rpcError(invalidParams, missing(id));
    return { session_id: id, closed: true };
  }
}

/** A session that is not here; one that never was in OpenEnv's own words. */
function missing(id: string): string {
  return madeAt(id) ? missingSession(id).message : `Unknown session_id: ${id.slice(0, 100)}`;
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

function failure(id: JsonRpcId, code: JsonRpcErrorCode, message: string, data: unknown = null) {
  return { jsonrpc: '2.0' as const, id, error: { code, message, data } };
}

/** The code that the SDK's own transport gives for a session that is not there. */
const SESSION_NOT_FOUND = -32001;

/**
 * The Model Context Protocol over Streamable HTTP. A client of the 2025 revisions gets an `mcp-session-id`, which is the
 * id of its environment session; a client of the 2026 revision, which has no protocol sessions, passes the `session_id`
 * that `start_episode` answers, or relies on being the same caller.
 */
export function streamableHttp({ definition, sessions, requestSessions, tools }: ServerParts) {
  /** The context in which each request came. */
  const contexts = new WeakMap<Request, Context>();
  const handler = createMcpHandler(({ requestInfo }) => serverFor(contexts.get(requestInfo!)!));
  return { post, remove, close: () => handler.close() };

  async function post(context: Context): Promise<Response> {
    const reading = await readClientJson(await bodyBytes(context), context.get('client'));
    if (!reading.ok) return rpcAnswer(context, 400, parseError, `Parse error: ${reading.message}`);
    const request = context.req.raw;
    contexts.set(request, context);
    const message = reading.value;
    if (isJsonObject(message) && message.method === 'initialize') return initialize(context, message);
    const id = context.req.header('mcp-session-id');
    if (id !== undefined && !(await sessions.resume(id))) return sessionNotFound(context);
    return handler.fetch(request, { parsedBody: message });
  }

  async function remove(context: Context): Promise<Response> {
    const id = context.req.header('mcp-session-id');
    if (id === undefined)
      return rpcAnswer(context, 400, invalidRequest, 'The header mcp-session-id is missing');
    if (!(await sessions.resume(id))) return sessionNotFound(context);
    await sessions.close(id);
    return context.body(null, 204);
  }

  async function initialize(context: Context, message: JsonObject): Promise<Response> {
    let session: Session;
    try {
      session = sessions.open(requestSessions.caller(context).name);
    } catch (error) {
      const { status, jsonRpc, message: text } = errorAnswer(error);
      return rpcAnswer(context, status, jsonRpc, text, message.id);
    }
    const response = await handler.fetch(context.req.raw, { parsedBody: message });
    if (response.ok) response.headers.set('mcp-session-id', session.id);
    else await sessions.close(session.id);
    return response;
  }

  function serverFor(context: Context): Server {
    const { id, name, version, description } = definition;
    const server = new Server(
      { name: id, title: name, version },
      {
        capabilities: { tools: {} },
        instructions: `${description} Play it with the tools: start an episode, take actions until the answer says \`done\`, and look at the reward of each.`,
      },
    );
    server.setRequestHandler('tools/list', () => ({ tools: [...tools.values()].map(listing) as never[] }));
    server.setRequestHandler('tools/call', ({ params }) =>
      call(context, params.name, params.arguments ?? {}),
    );
    return server;
  }

  async function call(context: Context, name: string, args: JsonObject): Promise<CallToolResult> {
    try {
      const tool = tools.get(name);
      if (!tool) throw new Error(`Unknown tool: '${name.slice(0, 100)}'`);
      const { session_id, ...own } = args;
      const sessionId = typeof session_id === 'string' ? session_id : context.req.header('mcp-session-id');
      const session = tool.sessionless ? undefined : await sessionFor(context, tool, sessionId);
      const value = await tool.call(session!, own, requestSessions.caller(context));
      const told = tool.startsEpisode ? { session_id: session!.id, ...(value as object) } : value;
      const { text, structured } = toolContent(told);
      return { content: [{ type: 'text', text }], structuredContent: structured };
    } catch (error) {
      // In MCP a tool that fails says so in its result, where the model can read it and do better.
      return { content: [{ type: 'text', text: (error as Error).message }], isError: true };
    }
  }

  async function sessionFor(context: Context, tool: EnvironmentTool, sessionId: string | undefined) {
    const open = () => {
      const opened = sessions.open(requestSessions.caller(context).name);
      requestSessions.remember(context, opened);
      return opened;
    };
    if (tool.startsEpisode && sessionId === undefined) return open();
    const session = await requestSessions.of(context, sessionId);
    // In production the episode is started for the agent.
    if (!session && sessionId === undefined && !tools.has('start_episode')) return open();
    if (!session) throw new EnvironmentError('NOT_RESET', 'You have no session yet. Start an episode first.');
    return session;
  }
}

function listing(tool: EnvironmentTool) {
  const { name, title, description, inputSchema, readOnly = false, sessionless } = tool;
  const about = 'The session that start_episode answered. May be left out by a client that plays only one.';
  const properties = { ...inputSchema.properties, session_id: { type: 'string', description: about } };
  return {
    ...{ name, title, description },
    inputSchema: sessionless ? inputSchema : { ...inputSchema, properties },
    annotations: { readOnlyHint: readOnly, openWorldHint: false },
  };
}

function sessionNotFound(context: Context): Response {
  return rpcAnswer(context, 404, SESSION_NOT_FOUND, 'Session not found. Initialize a new one.');
}

function rpcAnswer(
  context: Context,
  status: ErrorAnswer['status'],
  code: number,
  message: string,
  id: unknown = null,
) {
  return context.json({ jsonrpc: '2.0', id, error: { code, message } }, status);
}

const errorBody = z.object({
  jsonrpc: z.literal('2.0'),
  error: z.object({ code: z.int(), message: z.string() }),
});

/**
 * `/mcp`: two protocols on one path. MCP requires its clients to accept an event stream, which OpenEnv's own clients
 * never do; that tells them apart.
 */
export function mountMcpRoutes(
  addRoute: AddRoute,
  { jsonRpc, requestSessions }: ServerParts,
  mcp: ReturnType<typeof streamableHttp>,
): void {
  addRoute(
    {
      ...described('mcp_endpoint_mcp_post'),
      body: z.unknown(),
      rawBody: true,
      answer: jsonValue<JsonRpcResponse>({ type: 'object' }),
      errorBody,
    },
    async (context) => {
      if (/\btext\/event-stream\b/i.test(context.req.header('accept') ?? '')) return mcp.post(context);
      return jsonRpc.answerBytes(await bodyBytes(context), { caller: requestSessions.caller(context) });
    },
  );
  addRoute(
    {
      ...described('mcp_endpoint_mcp_delete'),
      headers: { 'mcp-session-id': 'The session to end' },
      errorBody,
    },
    (context) => mcp.remove(context),
  );
}
