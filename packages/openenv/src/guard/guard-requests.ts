import type { IncomingMessage } from 'node:http';
import type { Context, Hono } from 'hono';
import { cors } from 'hono/cors';
import type { Guard, GuardedRequest } from './guard.ts';

/** Sites that may show the server's pages in a frame: its own, and Hugging Face, which shows Spaces in one. */
const FRAME_ANCESTORS = "frame-ancestors 'self' https://huggingface.co https://*.hf.space";

declare module 'hono' {
  interface ContextVariableMap {
    /** Digest of who makes the request, as of `Guard.clientOf`. */
    client: string;
  }
}

/** Puts the guard before all routes of an application. */
export function guardRequests(app: Hono, guard: Guard): void {
  app.use(async function secureHeaders(context, next) {
    await next();
    const { headers } = context.res;
    headers.set('x-content-type-options', 'nosniff');
    headers.set('referrer-policy', 'strict-origin-when-cross-origin');
    // Each page has a policy of its own; the sites that may frame it are the same for all.
    const policy = headers.get('content-security-policy');
    headers.set(
      'content-security-policy',
      policy === null ? FRAME_ANCESTORS : `${policy}; ${FRAME_ANCESTORS}`,
    );
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
    const request = guarded(context);
    const refusal = guard.check(request, context.req.path);
    if (!refusal) {
      context.set('client', guard.clientOf(request));
      return next();
    }
    return context.json({ detail: refusal.detail, code: refusal.code }, refusal.status, refusal.headers);
  });
}

/** Requests made in process, as `app.request()` does, have no connection. */
export function guarded({ env, req }: Context): GuardedRequest {
  const incoming: IncomingMessage | undefined = env?.incoming;
  return incoming ?? { method: req.method, headers: req.header(), socket: { remoteAddress: 'in process' } };
}
