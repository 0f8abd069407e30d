import type { Hono } from 'hono';
import { routePath } from 'hono/route';
import type { EnvironmentDefinition } from '../protocol/definition.ts';
import type { SchemaBody } from '../protocol/messages.ts';
import { withDefaults } from '../protocol/read-json.ts';
import type { ResetOptionsReader } from '../protocol/reset-options.ts';
import type { ActionReader } from '../protocol/schemas.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { type Logger, type SessionStore, silentLogger } from '../sessions/session-store.ts';
import type { RequestSessions } from './environment-routes.ts';
import type { Guard, GuardOptions } from './guard.ts';
import type { JsonRpcEndpoint } from './json-rpc-endpoint.ts';
import { MAX_PROXIES } from './request-origin.ts';
import type { EnvironmentTools } from './tools.ts';

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

/** The numbers of a server, as `GET /metrics` answers them. */
export interface ServerMetrics {
  readonly contentType: string;
  observeRequest(method: string, route: string, status: number, seconds: number): void;
  text(): Promise<string>;
}

/**
 * Makes the metrics of one server. `prometheusMetrics()` of `@servegym/openenv/metrics` is one. The figures of the sessions
 * are read when the metrics are asked for, so that the hot path only counts.
 */
export type MetricsFactory = (sessions: SessionRegistry, sockets: { readonly size: number }) => ServerMetrics;

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

/** Options of a server. Every field has a default. */
export interface ServerOptions {
  /** `production` leaves out `/reset`, `/step` and `/state`. Default `simulation`. */
  readonly mode?: 'simulation' | 'production';
  /** Most sessions at once, over WebSocket, HTTP and MCP together. Default 1024. */
  readonly maxSessions?: number;
  /** Keeps sessions beyond their time in memory and the end of the process. Default none. */
  readonly store?: SessionStore | undefined;
  /** A session that no socket holds leaves memory after resting this long, ms. Default one hour; `null`: never. */
  readonly idleTimeoutMs?: number | null;
  /** A socket that sends nothing for this long is closed with its session, ms. Default `null`: never. */
  readonly socketIdleTimeoutMs?: number | null;
  /** Longest request body and WebSocket message, bytes. Default 1 MiB. */
  readonly maxMessageBytes?: number;
  /** Largest episode, in the units of the environment's `episodeSize`. Default: no limit. */
  readonly maxEpisodeSize?: number;
  /** Most that all episodes in memory have together, in the same units. Default: no limit. */
  readonly maxTotalSize?: number;
  /** A socket is pinged this often and dropped when a ping stays unanswered until the next, ms. Default 20 s. */
  readonly pingIntervalMs?: number;
  /** Access rules. Default: everybody, from pages of the server's own host and of this machine. */
  readonly guard?: GuardOptions;
  /** Log of the server. A pino logger will do. Default: none. */
  readonly logger?: Logger;
  /** Answers `GET /metrics`: `prometheusMetrics()` of `@servegym/openenv/metrics`. Default: there is no such route. */
  readonly metrics?: MetricsFactory | undefined;
  /**
   * Proxies of yours before the server, which set `x-forwarded-for` and `x-forwarded-host`; 0 ignores these headers.
   * Default 0.
   */
  readonly trustedProxies?: number;
}

export type ResolvedServerOptions = Required<Omit<ServerOptions, 'store' | 'metrics'>> &
  Pick<ServerOptions, 'store' | 'metrics'>;

/** The parts of a server, as its routes and sockets use them. */
export interface ServerParts {
  readonly definition: EnvironmentDefinition;
  readonly options: ResolvedServerOptions;
  readonly guard: Guard;
  readonly schemas: SchemaBody;
  readonly readAction: ActionReader<unknown>;
  readonly readResetOptions: ResetOptionsReader;
  readonly sessions: SessionRegistry;
  readonly requestSessions: RequestSessions;
  readonly tools: EnvironmentTools;
  readonly jsonRpc: JsonRpcEndpoint;
}

const DEFAULTS: ResolvedServerOptions = {
  mode: 'simulation',
  maxSessions: 1024,
  idleTimeoutMs: 3_600_000,
  socketIdleTimeoutMs: null,
  maxMessageBytes: 1024 * 1024,
  maxEpisodeSize: Number.POSITIVE_INFINITY,
  maxTotalSize: Number.POSITIVE_INFINITY,
  pingIntervalMs: 20_000,
  guard: {},
  logger: silentLogger,
  trustedProxies: 0,
};

/** Fills in the defaults. @throws TypeError naming the option that makes no sense. */
export function resolveServerOptions(options: ServerOptions): ResolvedServerOptions {
  const resolved = withDefaults(DEFAULTS, options);
  if (resolved.mode !== 'simulation' && resolved.mode !== 'production') {
    throw new TypeError(`Expected \`mode\` to be 'simulation' or 'production', got '${resolved.mode}'.`);
  }
  requirePositive(resolved, ['maxSessions', 'maxMessageBytes'], Number.isSafeInteger);
  requirePositive(resolved, ['maxEpisodeSize', 'maxTotalSize'], isNumber);
  requirePositive(resolved, ['pingIntervalMs'], Number.isFinite);
  const isTimeout = (value: unknown) => value === null || Number.isFinite(value);
  requirePositive(resolved, ['idleTimeoutMs', 'socketIdleTimeoutMs'], isTimeout);
  const { trustedProxies, metrics } = resolved;
  if (metrics !== undefined && typeof metrics !== 'function') {
    throw new TypeError(
      `Expected \`metrics\` to be \`prometheusMetrics()\` of @servegym/openenv/metrics, or to be left out, got \`${metrics}\`.`,
    );
  }
  if (!Number.isInteger(trustedProxies) || trustedProxies < 0 || trustedProxies > MAX_PROXIES) {
    throw new TypeError(
      `Expected \`trustedProxies\` to be a whole number from 0 to ${MAX_PROXIES}, got \`${trustedProxies}\` (${typeof trustedProxies}).`,
    );
  }
  return resolved;
}

function requirePositive(
  options: ResolvedServerOptions,
  names: readonly (keyof ResolvedServerOptions)[],
  isValid: (value: unknown) => boolean,
): void {
  for (const name of names) {
    const value = options[name] as number | null;
    if (isValid(value) && (value === null || value > 0)) continue;
    throw new TypeError(`Expected \`${name}\` to be a number above 0, got \`${value}\` (${typeof value}).`);
  }
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' && !Number.isNaN(value);
}
