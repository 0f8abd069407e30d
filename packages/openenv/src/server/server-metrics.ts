import type { Hono } from 'hono';
import { routePath } from 'hono/route';
import type { Logger, StoreCondition } from '../sessions/session-store.ts';

/** Counts of steps, resets and errors since a server was made. */
export class PlayCounts {
  steps = 0;
  resets = 0;
  /** WebSocket messages that were answered with an error, by its code. */
  readonly errors = new Map<string, number>();

  countError(code: string): void {
    this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
  }
}

/** Figures of the sessions, read when the metrics are asked for, so that the hot path only counts. */
export interface MeteredSessions {
  readonly size: number;
  readonly maxSessions: number;
  readonly counts: PlayCounts;
  readonly storeCondition: StoreCondition | undefined;
}

/** The numbers of a server, as `GET /metrics` answers them. */
export interface ServerMetrics {
  readonly contentType: string;
  observeRequest(method: string, route: string, status: number, seconds: number): void;
  text(): Promise<string>;
}

/** Makes the metrics of one server. `prometheusMetrics()` of `@servegym/openenv/metrics` is one. */
export type MetricsFactory = (sessions: MeteredSessions, sockets: { readonly size: number }) => ServerMetrics;

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
