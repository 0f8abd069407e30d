import { createHash } from 'node:crypto';
import { isAllowedOrigin } from './allowed-origin.ts';
import { RateLimiter, type RateLimitOptions } from './rate-limiter.ts';

/** Who may use a server, and how much. */
export interface GuardOptions {
  /** When there are any, requests must carry one as `authorization: Bearer`. `/health` is open to all. Default none. */
  readonly tokens?: readonly string[];
  /** Paths that need no token, with all below them; for instance `/web`. Default none. */
  readonly openPaths?: readonly string[];
  /**
   * Origins of other sites whose pages may use the server, for instance `https://example.com`; `*` is all. Pages of the
   * server's own host and of this machine always may. Default none.
   */
  readonly origins?: readonly string[];
  /** Limits the requests of each client: each token, else each address. `/health` is not counted. Default none. */
  readonly rateLimit?: RateLimitOptions;
}

/** What the guard looks at, of an HTTP request as of a WebSocket handshake. */
export interface GuardedRequest {
  readonly path: string;
  readonly address: string;
  header(name: string): string | undefined;
}

/** Why a request is not let in. */
export interface Refusal {
  readonly status: 401 | 403 | 429;
  readonly code: 'UNAUTHORIZED' | 'ORIGIN_REFUSED' | 'RATE_LIMITED';
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Decides who may use the server. */
export class Guard {
  /** Digests, so that looking a token up takes no longer the more of it is right. */
  readonly #tokens: ReadonlySet<string>;
  readonly #openPaths: readonly string[];
  readonly #origins: readonly string[];
  readonly #rateLimiter: RateLimiter | null;

  /** @throws TypeError naming the option that makes no sense. */
  constructor({ tokens = [], openPaths = [], origins = [], rateLimit }: GuardOptions = {}) {
    if (tokens.some((token) => token === '')) {
      throw new TypeError('Expected `tokens` to be texts that are not empty, got an empty one.');
    }
    this.#tokens = new Set(tokens.map(digest));
    this.#openPaths = ['/health', ...openPaths];
    this.#origins = origins;
    this.#rateLimiter = rateLimit ? new RateLimiter(rateLimit) : null;
  }

  /** The origins of other sites that may use the server. */
  get origins(): readonly string[] {
    return this.#origins;
  }

  /** `null` for a request that may go on. */
  check(request: GuardedRequest): Refusal | null {
    const token = bearer(request);
    const known = token !== undefined && this.#tokens.has(digest(token));
    return (
      this.#checkOrigin(request) ??
      // Only a token that is known tells clients apart: anybody can make up others.
      this.#checkRate(request, known ? token : request.address) ??
      (known ? null : this.#checkToken(request.path))
    );
  }

  #checkOrigin(request: GuardedRequest): Refusal | null {
    const origin = request.header('origin');
    const hosts = [request.header('host'), request.header('x-forwarded-host')];
    if (origin === undefined || isAllowedOrigin(origin, hosts, this.#origins)) return null;
    return {
      status: 403,
      code: 'ORIGIN_REFUSED',
      detail: `Pages of ${origin.slice(0, 200)} may not use this server. Allow the origin in its options.`,
      headers: {},
    };
  }

  #checkRate(request: GuardedRequest, client: string): Refusal | null {
    if (!this.#rateLimiter || request.path === '/health') return null;
    const waitMs = this.#rateLimiter.take(client);
    if (waitMs === 0) return null;
    const seconds = Math.ceil(waitMs / 1000);
    return {
      status: 429,
      code: 'RATE_LIMITED',
      detail: `Too many requests: ${this.#rateLimiter.description}. Try again in ${seconds} s.`,
      headers: { 'retry-after': String(seconds) },
    };
  }

  #checkToken(path: string): Refusal | null {
    if (this.#tokens.size === 0 || this.#openPaths.some((open) => isUnder(path, open))) return null;
    return {
      status: 401,
      code: 'UNAUTHORIZED',
      detail: 'Expected the header `authorization: Bearer` with a token of this server.',
      headers: { 'www-authenticate': 'Bearer' },
    };
  }
}

function digest(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

function bearer(request: GuardedRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.header('authorization') ?? '')?.[1];
}

function isUnder(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
