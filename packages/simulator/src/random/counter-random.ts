import { portableMath } from '../portable-math.ts';

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

/** A 32-bit key for a named stream under a seed (an integer in 0 .. 2^53 - 1). A key of a wide seed does not tell the seed. */
export function streamKey(seed: number, stream: string): number {
  if (seed >= WIDE_SEEDS) return new WideBits(seed, stream).word(0);
  let key = mix((seed >>> 0) ^ 0x9e3779b9);
  key = mix(key ^ Math.floor(seed / 0x1_0000_0000));
  for (let i = 0; i < stream.length; i++) key = mix(Math.imul(key, 31) + stream.charCodeAt(i));
  return key;
}

/** The part of (key, a, b) that is the same for all b. */
export function subKey(key: number, a: number): number {
  return mix(key + Math.imul(a, 0x9e3779b9));
}

/** Second part of a draw's counter, from b. */
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

/**
 * A stream of draws with a position: `state` is all there is to save. The draws of a wide seed, one from 2^44 on, do not
 * tell those to come: that takes 2^53 tries of the seed, where a 32-bit key takes 2^32.
 */
export class RandomStream {
  readonly key: number;
  readonly #wide: WideBits | null;
  position: number;

  constructor(seed: number, stream: string, position = 0) {
    this.key = streamKey(seed, stream);
    this.#wide = seed >= WIDE_SEEDS ? new WideBits(seed, stream) : null;
    this.position = position;
  }

  /** Uniform in [0, 1) with 53 bits. */
  uniform(): number {
    const n = this.position++;
    // Word 0 is the key of the stream, which other draws may tell.
    if (this.#wide !== null) return unitInterval(this.#wide.word(2 * n + 2), this.#wide.word(2 * n + 3));
    return unitInterval(randomBits(this.key, n, 0), randomBits(this.key, n, 1));
  }

  /** Log-uniform in [low, high), both above 0. */
  logUniform(low: number, high: number): number {
    return low * portableMath.pow(high / low, this.uniform());
  }

  /** Uniform integer in [low, high]. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  /** Exponential with the given mean. */
  exponential(mean: number): number {
    return -mean * portableMath.log(1 - this.uniform());
  }

  /** Standard normal (Box-Muller, one of the pair). */
  normal(): number {
    const radius = Math.sqrt(-2 * portableMath.log(1 - this.uniform()));
    return radius * portableMath.cos(2 * Math.PI * this.uniform());
  }

  /** Log-normal: exp(mu + sigma * N(0, 1)). */
  lognormal(mu: number, sigma: number): number {
    return portableMath.exp(mu + sigma * this.normal());
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

/** Uniform in [0, 1) with 53 of these 64 bits. */
function unitInterval(high: number, low: number): number {
  return ((high >>> 5) * 0x400_0000 + (low >>> 6)) * 2 ** -53;
}

/** Seeds from here on are wide: ranked episodes have them. Planners draw their futures from seeds below. */
const WIDE_SEEDS = 2 ** 44;
const BLOCK_WORDS = 16;
const DOUBLE_ROUNDS = 4;

/** The words of a stream of a wide seed: ChaCha8 (Bernstein, 2008), keyed with seed and name. */
class WideBits {
  readonly #input = new Int32Array(BLOCK_WORDS);
  readonly #block = new Int32Array(BLOCK_WORDS);
  #number = -1;

  constructor(seed: number, stream: string) {
    const input = this.#input;
    input.set([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, seed | 0, Math.floor(seed / 2 ** 32)]);
    for (let i = 0; i < stream.length; i++) {
      const word = 6 + (i % 6);
      input[word] = Math.imul(input[word], 0x101) + stream.charCodeAt(i);
    }
  }

  word(index: number): number {
    const number = Math.floor(index / BLOCK_WORDS);
    if (number !== this.#number) this.#make(number);
    return this.#block[index % BLOCK_WORDS];
  }

  #make(number: number): void {
    const [input, block] = [this.#input, this.#block];
    this.#number = number;
    input[12] = number;
    block.set(input);
    for (let round = 0; round < DOUBLE_ROUNDS; round++) {
      for (let column = 0; column < 4; column++) quarterRound(block, column, 0);
      for (let diagonal = 0; diagonal < 4; diagonal++) quarterRound(block, diagonal, 1);
    }
    for (let i = 0; i < BLOCK_WORDS; i++) block[i] += input[i];
  }
}

/** Mixes a column, or with `slant` 1 a diagonal, of the 4 by 4 words. */
function quarterRound(words: Int32Array, column: number, slant: 0 | 1): void {
  const a = column;
  const b = 4 + ((column + slant) & 3);
  const c = 8 + ((column + 2 * slant) & 3);
  const d = 12 + ((column + 3 * slant) & 3);
  words[a] += words[b];
  words[d] = rotated(words[d] ^ words[a], 16);
  words[c] += words[d];
  words[b] = rotated(words[b] ^ words[c], 12);
  words[a] += words[b];
  words[d] = rotated(words[d] ^ words[a], 8);
  words[c] += words[d];
  words[b] = rotated(words[b] ^ words[c], 7);
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
