import type { Hono } from 'hono';
import type { JsonRpcEndpoint } from '../mcp/json-rpc-endpoint.ts';
import type { StreamableHttpEndpoint } from '../mcp/streamable-http.ts';
import type { RequestSessions } from './request-sessions.ts';

/**
 * `/mcp`: two protocols on one path. MCP requires its clients to accept an event stream, which OpenEnv's own clients
 * never do; that tells them apart.
 */
export function mountMcpRoutes(
  app: Hono,
  jsonRpc: JsonRpcEndpoint,
  mcp: StreamableHttpEndpoint,
  requestSessions: RequestSessions,
): void {
  app.post('/mcp', async (context) => {
    if (/\btext\/event-stream\b/i.test(context.req.header('accept') ?? '')) return mcp.post(context);
    const text = await context.req.text();
    return context.json(await jsonRpc.answerText(text, undefined, requestSessions.caller(context)));
  });
  app.delete('/mcp', (context) => mcp.delete(context));
}
