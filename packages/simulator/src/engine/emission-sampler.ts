import { counterOf, nextCounter, subKeyBits, subKeyUpperBits } from '../random/counter-random.ts';

/** Upper bits of a draw that mostly decide it; the table they index fits the first-level cache. */
const INDEX_BITS = 12;

/**
 * Tokens that a verify step emits, 1 + the accepted drafts, where each verifies the same number of drafts: the same
 * draws as `AcceptanceSampler.accepted`, looked up instead of compared with every threshold.
 */
export class EmissionSampler {
  /** P(at least k accepted) in units of 2^-31, ascending. */
  declare private readonly thresholds: Int32Array;
  /** Tokens by the upper bits of a draw; 0 where the lower bits matter. */
  private readonly tokensByUpperBits = new Uint8Array(2 ** INDEX_BITS);

  /** @param thresholds P(at least k accepted) for k = 1 .. drafts, in units of 2^-31. */
  constructor(thresholds: Int32Array) {
    this.thresholds = thresholds.slice().sort();
    let from = 0;
    this.thresholds.forEach((threshold, k) => {
      const index = threshold >>> (31 - INDEX_BITS);
      this.tokensByUpperBits.fill(1 + thresholds.length - k, from, index);
      from = index + 1;
    });
    this.tokensByUpperBits.fill(1, from);
  }

  /**
   * Puts the tokens of the steps `firstStep`, `firstStep` + 1, ... of a request into `tokens`, entries `from` to before
   * `end`. `requestKey`: that of the `AcceptanceSampler`.
   */
  draw(requestKey: number, firstStep: number, tokens: Uint8Array, from: number, end: number): void {
    const table = this.tokensByUpperBits;
    let counter = counterOf(firstStep);
    let undecided = 0;
    for (let j = from; j < end; j++) {
      const drawn = table[subKeyUpperBits(requestKey, counter) >>> (32 - INDEX_BITS)];
      counter = nextCounter(counter);
      tokens[j] = drawn;
      undecided |= drawn - 1;
    }
    if (undecided >= 0) return;
    for (let j = from; j < end; j++) {
      if (tokens[j] === 0) tokens[j] = this.compare(subKeyBits(requestKey, firstStep + j - from) >>> 1);
    }
  }

  private compare(draw: number): number {
    let tokens = 1;
    for (let k = 0; k < this.thresholds.length; k++) if (draw < this.thresholds[k]) tokens++;
    return tokens;
  }
}
