import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plusFromState } from 'pure-rand/generator/xoroshiro128plus';
import type { RandomGenerator } from 'pure-rand/types/RandomGenerator';

/**
 * A stream of random numbers named by what it is for. The same seed and purpose give the same numbers on every
 * machine; another purpose gives unrelated ones, so that one consumer drawing more never shifts another.
 */
export class RandomStream {
  readonly #generator: RandomGenerator;

  /** `seed`: an integer from 0 to 2^53 - 1. */
  constructor(seed: number, purpose: string) {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new RangeError(`Expected \`seed\` to be an integer from 0 to 2^53 - 1, got ${seed}`);
    }
    let word = hashText(purpose);
    word = mix(word ^ (seed >>> 0));
    word = mix(word ^ Math.floor(seed / 2 ** 32));
    const state = [word];
    while (state.length < 4) state.push(mix(state.at(-1)! + 0x9e3779b9));
    this.#generator = xoroshiro128plusFromState(state);
  }

  /** Uniform in [0, 1), a multiple of 2^-53. */
  uniform(): number {
    return uniformFloat64(this.#generator);
  }

  /** Uniform over the integers `low`..`high`, both included. */
  integer(low: number, high: number): number {
    return uniformInt(this.#generator, low, high);
  }

  /** Standard normal (Box and Muller). */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }
}

/** FNV-1a. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}

/** The finalizer of MurmurHash3: every input bit reaches every output bit. */
function mix(word: number): number {
  let x = word | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}
