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

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** A token bucket for each client: it holds a full allowance and fills evenly. */
export class RateLimiter {
  readonly #capacity: number;
  readonly #perMs: number;
  readonly #buckets = new Map<string, Bucket>();

  /** @throws TypeError for an allowance that is not above 0. */
  constructor({ requests, perMs }: RateLimitOptions) {
    if (!(requests >= 1) || !(perMs > 0) || !Number.isFinite(requests) || !Number.isFinite(perMs)) {
      throw new TypeError(
        `Expected \`rateLimit\` to allow at least 1 request per time above 0, got ${requests} per ${perMs} ms.`,
      );
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
    const bucket = this.#buckets.get(client) ?? { tokens: this.#capacity, filledAt: now };
    const filled = ((now - bucket.filledAt) / this.#perMs) * this.#capacity;
    bucket.tokens = Math.min(this.#capacity, bucket.tokens + filled);
    bucket.filledAt = now;
    // A map keeps the order of insertion, so that its first key is the one that was longest away.
    this.#buckets.delete(client);
    this.#buckets.set(client, bucket);
    if (this.#buckets.size > MAX_CLIENTS) this.#buckets.delete(this.#buckets.keys().next().value!);
    if (bucket.tokens >= 1) {
      bucket.tokens--;
      return 0;
    }
    return ((1 - bucket.tokens) / this.#capacity) * this.#perMs;
  }
}
