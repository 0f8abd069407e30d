/**
 * Counter-based random numbers: the n-th draw of a stream is a pure function of (key, n), so a draw more or less in
 * one place never shifts another, and a snapshot of a stream is a number.
 *
 * The mixer is two rounds of MurmurHash3's 32-bit finaliser (Appleby, public domain) over key and counter.
 */
function mix(h: number): number {
  let x = h;
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return x ^ (x >>> 16);
}

/** A 32-bit key for a named stream under a seed (an integer in 0 .. 2^53 - 1). */
export function streamKey(seed: number, stream: string): number {
  let key = mix((seed >>> 0) ^ 0x9e3779b9);
  key = mix(key ^ Math.floor(seed / 0x1_0000_0000));
  for (let i = 0; i < stream.length; i++) key = mix(Math.imul(key, 31) + stream.charCodeAt(i));
  return key;
}

/** The part of (key, a, b) that is the same for all b. */
export function subKey(key: number, a: number): number {
  return mix(key + Math.imul(a, 0x9e3779b9));
}

/** What b is to a draw. */
export function counterOf(b: number): number {
  return (Math.imul(b, 0x7feb352d) + 0x165667b1) | 0;
}

/** The counter of b + 1. */
export function nextCounter(counter: number): number {
  return (counter + 0x7feb352d) | 0;
}

/** 32 random bits, as a signed integer, for (key, a, b), given the `subKey` of key and a. */
export function subKeyBits(subKey: number, b: number): number {
  return mix(subKey ^ counterOf(b));
}

/** `subKeyBits` for the b of a counter, of which only the upper 16 bits are right: for many draws in a row. */
export function subKeyUpperBits(subKey: number, counter: number): number {
  let x = subKey ^ counter;
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  return Math.imul(x, 0xc2b2ae35);
}

/** 32 random bits, as a signed integer, for (key, a, b). */
export function randomBits(key: number, a: number, b: number): number {
  return subKeyBits(subKey(key, a), b);
}

/** Uniform in [0, 1) with 32 bits for (key, a, b). */
export function randomUniform(key: number, a: number, b: number): number {
  return (randomBits(key, a, b) >>> 0) * 2 ** -32;
}

/** A stream of draws with a position: `state` is all there is to save. */
export class RandomStream {
  readonly key: number;
  position: number;

  constructor(seed: number, stream: string, position = 0) {
    this.key = streamKey(seed, stream);
    this.position = position;
  }

  /** Uniform in [0, 1) with 53 bits. */
  uniform(): number {
    const n = this.position++;
    const high = randomBits(this.key, n, 0) >>> 5;
    const low = randomBits(this.key, n, 1) >>> 6;
    return (high * 0x400_0000 + low) * 2 ** -53;
  }

  /** Uniform integer in [low, high]. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  /** Exponential with the given mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.uniform());
  }

  /** Standard normal (Box-Muller, one of the pair). */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }

  /** Log-normal: exp(mu + sigma * N(0, 1)). */
  lognormal(mu: number, sigma: number): number {
    return Math.exp(mu + sigma * this.normal());
  }

  /** Index drawn in proportion to `weights`. */
  choose(weights: readonly number[]): number {
    let total = 0;
    for (const weight of weights) total += weight;
    let at = this.uniform() * total;
    for (let i = 0; i < weights.length - 1; i++) {
      at -= weights[i];
      if (at < 0) return i;
    }
    return weights.length - 1;
  }
}
