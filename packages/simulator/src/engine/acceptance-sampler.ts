import {
  counterOf,
  nextCounter,
  streamKey,
  subKey,
  subKeyBits,
  subKeyUpperBits,
} from '../random/counter-random.ts';

/**
 * Draft tokens that a verify step accepts, drawn from measured P(at least k accepted). A draw belongs to (request,
 * verify step of the request), whatever else is in the batch, so draws can be made ahead and in any order.
 */
export class AcceptanceSampler {
  declare private readonly key: number;
  /** P(at least k + 1 accepted) in units of 2^-31. */
  declare private readonly thresholds: Int32Array;

  constructor(seed: number, survival: readonly number[]) {
    this.key = streamKey(seed, 'acceptance');
    this.thresholds = Int32Array.from(survival, (share) =>
      Math.min(2 ** 31 - 1, Math.round(share * 2 ** 31)),
    );
  }

  /** Key of a request for `accepted`, the same for all its steps. */
  requestKey(id: number): number {
    return subKey(this.key, id);
  }

  /** Accepted tokens of `drafts` (at most as many as probabilities are known). */
  accepted(requestKey: number, verifyStep: number, drafts: number): number {
    const draw = subKeyBits(requestKey, verifyStep) >>> 1;
    let accepted = 0;
    // The sign bit is the comparison: a branch here would be mispredicted as often as not.
    for (let k = 0; k < drafts; k++) accepted += (draw - this.thresholds[k]) >>> 31;
    return accepted;
  }

  /** Tokens emitted by steps that each verify `drafts` tokens (at most as many as probabilities are known). */
  emissions(drafts: number): EmissionSampler {
    return new EmissionSampler(this, this.thresholds.slice(0, drafts).sort());
  }
}

/** Upper bits of a draw that mostly decide it; the table they index fits the first-level cache. */
const INDEX_BITS = 12;

/**
 * Tokens that a verify step emits, 1 + the accepted drafts, where each verifies the same number of drafts: the same
 * draws as `AcceptanceSampler.accepted`, looked up instead of compared with every threshold.
 */
export class EmissionSampler {
  declare private readonly sampler: AcceptanceSampler;
  declare private readonly drafts: number;
  /** Tokens by the upper bits of a draw; 0 where the lower bits matter. */
  private readonly tokensByUpperBits = new Uint8Array(2 ** INDEX_BITS);

  /** @param thresholds P(at least k accepted) for k = 1 .. drafts, in units of 2^-31, ascending. */
  constructor(sampler: AcceptanceSampler, thresholds: Int32Array) {
    this.sampler = sampler;
    this.drafts = thresholds.length;
    let from = 0;
    thresholds.forEach((threshold, k) => {
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
      if (tokens[j] > 0) continue;
      tokens[j] = 1 + this.sampler.accepted(requestKey, firstStep + j - from, this.drafts);
    }
  }
}
