import { streamKey, subKey, subKeyBits } from '../random/counter-random.ts';
import { EmissionSampler } from './emission-sampler.ts';

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
    return new EmissionSampler(this.thresholds.subarray(0, drafts));
  }
}
