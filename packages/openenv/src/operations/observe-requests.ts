import type { Hono } from 'hono';
import { routePath } from 'hono/route';
import type { Logger } from './logger.ts';
import type { ServerMetrics } from './server-metrics.ts';

/** Paths that machines ask for all the time; they are measured but not logged. */
const UNLOGGED = new Set(['/health', '/metrics']);

/** Tells a logger of every request, and measures it. */
export function observeRequests(app: Hono, logger: Logger, metrics?: ServerMetrics): void {
  app.use(async function observeRequest(context, next) {
    const startedAt = performance.now();
    await next();
    const ms = performance.now() - startedAt;
    const { method, path } = context.req;
    const { status } = context.res;
    // The last route is the one that answered; the patterns keep the number of series small.
    const route = status === 404 ? 'unknown' : routePath(context, -1);
    metrics?.observeRequest(method, route, status, ms / 1000);
    if (!UNLOGGED.has(path)) {
      logger.info({ method, path, status, ms: Math.round(ms * 1000) / 1000 }, 'request answered');
    }
  });
}
