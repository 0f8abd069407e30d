import { z } from 'zod';
import type { JsonRpcEndpoint } from '../mcp/json-rpc-endpoint.ts';
import type { StreamableHttpEndpoint } from '../mcp/streamable-http.ts';
import type { JsonRpcResponse } from '../protocol/json-rpc.ts';
import type { RequestSessions } from './request-sessions.ts';
import { type AddRoute, jsonValue } from './route-table.ts';

const body = z.object({
  jsonrpc: z.literal('2.0'),
  error: z.object({ code: z.int(), message: z.string() }),
});
const unknownSession = { meaning: 'The `mcp-session-id` is unknown', body };

/**
 * `/mcp`: two protocols on one path. MCP requires its clients to accept an event stream, which OpenEnv's own clients
 * never do; that tells them apart.
 */
export function mountMcpRoutes(
  addRoute: AddRoute,
  jsonRpc: JsonRpcEndpoint,
  mcp: StreamableHttpEndpoint,
  requestSessions: RequestSessions,
): void {
  addRoute(
    {
      method: 'post',
      path: '/mcp',
      operationId: 'mcp_endpoint_mcp_post',
      tag: 'MCP',
      summary: 'Call tools over JSON-RPC',
      description:
        "OpenEnv's `tools/list`, `tools/call`, `openenv/session/create` and `openenv/session/close`; for clients that accept `text/event-stream`, the Model Context Protocol over Streamable HTTP.",
      body: z.unknown(),
      rawBody: true,
      answer: jsonValue<JsonRpcResponse>({ type: 'object' }),
      errors: { 404: unknownSession, 503: { meaning: 'No session is free', body } },
    },
    async (context) => {
      if (/\btext\/event-stream\b/i.test(context.req.header('accept') ?? '')) return mcp.post(context);
      const text = await context.req.text();
      return jsonRpc.answerText(text, undefined, requestSessions.caller(context));
    },
  );
  addRoute(
    {
      method: 'delete',
      path: '/mcp',
      operationId: 'mcp_endpoint_mcp_delete',
      tag: 'MCP',
      summary: 'End the MCP session',
      headers: { 'mcp-session-id': 'The session to end' },
      errors: { 400: { meaning: 'There is no `mcp-session-id`', body }, 404: unknownSession },
    },
    (context) => mcp.delete(context),
  );
}
