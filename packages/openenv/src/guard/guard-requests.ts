import type { IncomingMessage } from 'node:http';
import type { Context, Hono } from 'hono';
import { cors } from 'hono/cors';
import { clientAddress } from './client-address.ts';
import type { Guard, GuardedRequest } from './guard.ts';

/** Who may put pages of the server into a frame: the server itself and Hugging Face, which shows Spaces in one. */
const FRAME_ANCESTORS = "frame-ancestors 'self' https://huggingface.co https://*.hf.space";

/** Puts the guard before all routes of an application. */
export function guardRequests(app: Hono, guard: Guard, trustProxy: boolean): void {
  app.use(async function secureHeaders(context, next) {
    await next();
    const { headers } = context.res;
    headers.set('x-content-type-options', 'nosniff');
    headers.set('referrer-policy', 'strict-origin-when-cross-origin');
    if (!headers.has('content-security-policy')) headers.set('content-security-policy', FRAME_ANCESTORS);
  });
  if (guard.origins.length > 0) {
    app.use(
      cors({
        origin: guard.origins.includes('*') ? '*' : [...guard.origins],
        exposeHeaders: ['mcp-session-id', 'x-session-id', 'retry-after'],
        maxAge: 3600,
      }),
    );
  }
  app.use(async function checkRequest(context, next) {
    const refusal = guard.check(guarded(context, trustProxy));
    if (!refusal) return next();
    return context.json({ detail: refusal.detail, code: refusal.code }, refusal.status, refusal.headers);
  });
}

/** What the guard looks at of a WebSocket handshake. */
export function guardedHandshake(
  request: IncomingMessage,
  path: string,
  trustProxy: boolean,
): GuardedRequest {
  return {
    path,
    address: clientAddress(request, trustProxy),
    header: (name) => request.headers[name] as string | undefined,
  };
}

function guarded(context: Context, trustProxy: boolean): GuardedRequest {
  const incoming: IncomingMessage | undefined = context.env?.incoming;
  return {
    path: context.req.path,
    // Requests made in process, as `app.request()` does, have no connection.
    address: incoming ? clientAddress(incoming, trustProxy) : 'in process',
    header: (name) => context.req.header(name),
  };
}
