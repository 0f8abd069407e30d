import { type Logger, type SessionStore, silentLogger } from '../sessions/session-store.ts';
import type { GuardOptions } from './guard.ts';
import { MAX_PROXIES } from './request-origin.ts';
import type { MetricsFactory } from './server-metrics.ts';

/** Options of a server. Every field has a default. */
export interface ServerOptions {
  /** `production` leaves out `/reset`, `/step` and `/state`. Default `simulation`. */
  readonly mode?: 'simulation' | 'production';
  /** Most sessions at once, over WebSocket, HTTP and MCP together. Default 1024. */
  readonly maxSessions?: number;
  /** Keeps sessions beyond their time in memory and the end of the process. Default none. */
  readonly store?: SessionStore;
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
  readonly metrics?: MetricsFactory;
  /**
   * Proxies of yours before the server, which set `x-forwarded-for` and `x-forwarded-host`; 0 ignores these headers.
   * Default 0.
   */
  readonly trustedProxies?: number;
}

export type ResolvedServerOptions = Required<Omit<ServerOptions, 'store' | 'metrics'>> &
  Pick<ServerOptions, 'store' | 'metrics'>;

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
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const resolved: ResolvedServerOptions = { ...DEFAULTS, ...Object.fromEntries(given) };
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
