import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Context, Hono } from 'hono';
import { cors } from 'hono/cors';
import { clientAddress, clientNetwork, hostCheck, isAllowedOrigin, requestedHost } from './request-origin.ts';

/** Sites that may show the server's pages in a frame: its own, and Hugging Face, which shows Spaces in one. */
const FRAME_ANCESTORS = "frame-ancestors 'self' https://huggingface.co https://*.hf.space";

declare module 'hono' {
  interface ContextVariableMap {
    /** Digest of who makes the request, as of `Guard.clientOf`. */
    client: string;
  }
}

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

/** Access rules and rate limits of a server. */
export interface GuardOptions {
  /** When there are any, requests must carry one as `authorization: Bearer`. `/health` is open to all. Default none. */
  readonly tokens?: readonly string[];
  /**
   * Paths of pages, with all below them, for instance `/web`. They need no token, and pages of other sites may show them
   * in a frame. Default none.
   */
  readonly openPaths?: readonly string[];
  /**
   * Origins of other sites whose pages may use the server, for instance `https://example.com`; `*` is all. Pages of the
   * server's own host and of this machine always may. Default none.
   */
  readonly origins?: readonly string[];
  /**
   * Names under which clients may reach the server, without a port: `gym.example.com`, `*.example.com`, or `*` for any.
   * `localhost` and the addresses at which the server listens always may. Default none.
   */
  readonly allowedHosts?: readonly string[];
  /**
   * Limits the requests of each client: each token, else each address, of IPv6 each /64. `/health` is not counted.
   * Servers that share a limiter count together. Default none.
   */
  readonly rateLimit?: RateLimitOptions | RateLimiter;
}

/** Parts of an HTTP request or WebSocket handshake that the guard reads. */
export type GuardedRequest = Pick<IncomingMessage, 'method' | 'headers'> & {
  readonly socket: Partial<Pick<IncomingMessage['socket'], 'localAddress' | 'remoteAddress'>>;
};

/** Why a request is not let in. */
export interface Refusal {
  readonly status: 401 | 403 | 429;
  readonly code: 'UNAUTHORIZED' | 'HOST_REFUSED' | 'ORIGIN_REFUSED' | 'RATE_LIMITED';
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
}

const DOCS_PATHS = ['/docs', '/redoc'];
/** `sec-fetch-site` of requests that no page of another site made. */
const SAME_SITE = ['same-origin', 'none'];

/** Decides who may use the server. */
export class Guard {
  /** The origins of other sites that may use the server. */
  readonly origins: readonly string[];
  /** Digests, so that looking a token up takes no longer the more of it is right. */
  readonly #tokens: ReadonlySet<string>;
  readonly #openPaths: readonly string[];
  readonly #allowsHost: ReturnType<typeof hostCheck>;
  readonly #trustedProxies: number;
  readonly #rateLimiter: RateLimiter | null;

  /**
   * @param trustedProxies Proxies before the server that set `x-forwarded-for` and `x-forwarded-host`.
   * @throws TypeError naming the option that makes no sense.
   */
  constructor(
    { tokens = [], openPaths = [], origins = [], allowedHosts = [], rateLimit }: GuardOptions = {},
    trustedProxies = 0,
  ) {
    if (tokens.some((token) => token === '')) {
      throw new TypeError('Expected `tokens` to be texts that are not empty, got an empty one.');
    }
    this.#tokens = new Set(tokens.map(digest));
    this.#openPaths = openPaths;
    this.origins = origins;
    this.#allowsHost = hostCheck(allowedHosts);
    this.#trustedProxies = trustedProxies;
    this.#rateLimiter = rateLimit ? RateLimiter.of(rateLimit) : null;
  }

  /**
   * `null` for a request that may go on.
   * @param path As routes see it, which is not always as the client wrote it.
   */
  check(request: GuardedRequest, path: string): Refusal | null {
    const known = this.#knownToken(request) !== undefined;
    return (
      this.#checkHost(request) ??
      this.#checkSite(request, path) ??
      this.#checkRate(request, path) ??
      (known ? null : this.#checkToken(path))
    );
  }

  /**
   * Digest of who makes a request: a token, else an address, of IPv6 its /64. Only a token that is known tells clients apart: anybody can
   * make up others.
   */
  clientOf(request: GuardedRequest): string {
    return digest(this.#knownToken(request) ?? clientNetwork(clientAddress(request, this.#trustedProxies)));
  }

  #knownToken({ headers }: GuardedRequest): string | undefined {
    const token = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
    return token !== undefined && this.#tokens.has(digest(token)) ? token : undefined;
  }

  #checkHost(request: GuardedRequest): Refusal | null {
    const host = requestedHost(request, this.#trustedProxies);
    // Browsers always send one, and HTTP/1.1 requires it.
    if (host === undefined || this.#allowsHost(host, request.socket.localAddress)) return null;
    const detail = `Expected the header \`host\` to name this server, got \`${host.slice(0, 200)}\`. If clients are to reach it under that name, add the name to its allowed hosts.`;
    return { status: 403, code: 'HOST_REFUSED', detail, headers: {} };
  }

  /** Refuses what a page of another site sends, or loads as an image or script, but not links to the server. */
  #checkSite(request: GuardedRequest, path: string): Refusal | null {
    const { origin, 'sec-fetch-site': site } = request.headers;
    let detail =
      'Pages of other sites may not load this. Allow their origin in the options of the server, and ask with CORS.';
    if (origin !== undefined) {
      const ownHost = requestedHost(request, this.#trustedProxies);
      if (isAllowedOrigin(origin, ownHost, this.origins)) return null;
      detail = `Pages of ${origin.slice(0, 200)} may not use this server. Allow the origin in its options.`;
    } else {
      if (site === undefined || SAME_SITE.includes(String(site)) || this.origins.includes('*')) return null;
      if (this.#isPageView(request, path)) return null;
    }
    return { status: 403, code: 'ORIGIN_REFUSED', detail, headers: {} };
  }

  /** True when a browser opens the answer in a window, or one of the server's pages in a frame. */
  #isPageView({ method, headers }: GuardedRequest, path: string): boolean {
    if ((method !== 'GET' && method !== 'HEAD') || headers.upgrade !== undefined) return false;
    if (headers['sec-fetch-mode'] !== 'navigate') return false;
    const target = headers['sec-fetch-dest'];
    if (target === 'document') return true;
    return (
      (target === 'iframe' || target === 'frame') &&
      [...DOCS_PATHS, ...this.#openPaths].some((page) => isUnder(path, page))
    );
  }

  #checkRate(request: GuardedRequest, path: string): Refusal | null {
    if (!this.#rateLimiter || path === '/health') return null;
    const waitMs = this.#rateLimiter.take(this.clientOf(request));
    if (waitMs === 0) return null;
    const seconds = Math.ceil(waitMs / 1000);
    const detail = `Too many requests: ${this.#rateLimiter.description}. Try again in ${seconds} s.`;
    return { status: 429, code: 'RATE_LIMITED', detail, headers: { 'retry-after': String(seconds) } };
  }

  #checkToken(path: string): Refusal | null {
    const isOpen = path === '/health' || this.#openPaths.some((open) => isUnder(path, open));
    if (this.#tokens.size === 0 || isOpen) return null;
    const detail = 'Expected the header `authorization: Bearer` with a token of this server.';
    return { status: 401, code: 'UNAUTHORIZED', detail, headers: { 'www-authenticate': 'Bearer' } };
  }
}

function digest(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

function isUnder(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** A map that forgets what was longest unused when it has more than so many keys. */
export class RecentMap<Value> {
  readonly #most: number;
  readonly #values = new Map<string, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Value | undefined {
    const value = this.#values.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    // A map keeps the order of insertion, so that its first key is the one that was longest away.
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size > this.#most) this.#values.delete(this.#values.keys().next().value!);
  }

  delete(key: string): void {
    this.#values.delete(key);
  }
}

/** So many requests of a client in so long; unused ones are saved up to that number. */
export interface RateLimitOptions {
  readonly requests: number;
  /** ms */
  readonly perMs: number;
}

/** 100 requests a minute. */
export const DEFAULT_RATE_LIMIT: RateLimitOptions = { requests: 100, perMs: 60_000 };

/** Clients that are remembered; the one that was longest away is forgotten first. */
const MAX_CLIENTS = 100_000;

/** A token bucket for each client: it holds a full allowance and fills evenly. */
export class RateLimiter {
  readonly #capacity: number;
  readonly #perMs: number;
  readonly #buckets = new RecentMap<{ tokens: number; filledAt: number }>(MAX_CLIENTS);

  /** @throws TypeError for an allowance that is not above 0. */
  constructor({ requests, perMs }: RateLimitOptions) {
    if (!(requests >= 1) || !(perMs > 0) || !Number.isFinite(requests) || !Number.isFinite(perMs)) {
      const problem = `Expected \`rateLimit\` to allow at least 1 request per time above 0, got ${requests} per ${perMs} ms.`;
      throw new TypeError(problem);
    }
    this.#capacity = requests;
    this.#perMs = perMs;
  }

  /** The limiter itself, or a new one of these options. */
  static of(limit: RateLimitOptions | RateLimiter): RateLimiter {
    return limit instanceof RateLimiter ? limit : new RateLimiter(limit);
  }

  get description(): string {
    return `${this.#capacity} per ${this.#perMs / 1000} s are allowed`;
  }

  /** Takes one request from a client's allowance. Returns how long to wait when there is none left, ms. */
  take(client: string, now = performance.now()): number {
    const waitMs = this.waitMs(client, now);
    if (waitMs === 0) this.charge(client, 1, now);
    return waitMs;
  }

  /** How long a client has to wait until it has one request again, ms; 0 when it has one. */
  waitMs(client: string, now = performance.now()): number {
    const { tokens } = this.#filled(client, now);
    return tokens >= 1 ? 0 : ((1 - tokens) / this.#capacity) * this.#perMs;
  }

  /** Takes what was used from a client's allowance, which may then be owed. */
  charge(client: string, count: number, now = performance.now()): void {
    this.#filled(client, now).tokens -= count;
  }

  #filled(client: string, now: number): { tokens: number; filledAt: number } {
    const bucket = this.#buckets.get(client) ?? { tokens: this.#capacity, filledAt: now };
    const filled = ((now - bucket.filledAt) / this.#perMs) * this.#capacity;
    bucket.tokens = Math.min(this.#capacity, bucket.tokens + filled);
    bucket.filledAt = now;
    this.#buckets.set(client, bucket);
    return bucket;
  }
}
