import type { RandomStream } from '@servegym/simulator';
import type { FloatArray } from './kernels.ts';

/**
 * A policy that chooses one bin in each of several heads, independently given the observation. A row of logits, or of
 * log-probabilities, holds those of all heads, one after the other; a row of actions holds one bin a head.
 */
export class CategoricalHeads {
  /** Bins of each head. */
  readonly sizes: readonly number[];
  /** Logits of a row. */
  readonly logitCount: number;
  /** Of one head, while its gradient is written. */
  readonly #probabilities: Float64Array;

  constructor(sizes: readonly number[]) {
    this.sizes = sizes;
    this.logitCount = sizes.reduce((sum, size) => sum + size, 0);
    this.#probabilities = new Float64Array(Math.max(...sizes));
  }

  /** Adds `bonus` to the logit of one bin in each head of each row, in place. */
  favor(logits: FloatArray, bins: Int32Array, bonus: number, rows: number): void {
    let bin = 0;
    let at = 0;
    for (let row = 0; row < rows; row++) {
      for (const size of this.sizes) {
        logits[at + bins[bin++]] += bonus;
        at += size;
      }
    }
  }

  /** Turns rows of logits into rows of log-probabilities, in place. */
  normalize(logits: FloatArray, rows: number): void {
    for (let row = 0, at = 0; row < rows; row++) {
      for (const size of this.sizes) {
        const end = at + size;
        let largest = logits[at];
        for (let k = at + 1; k < end; k++) if (logits[k] > largest) largest = logits[k];
        let sum = 0;
        for (let k = at; k < end; k++) sum += Math.exp(logits[k] - largest);
        const logSum = largest + Math.log(sum);
        for (let k = at; k < end; k++) logits[k] -= logSum;
        at = end;
      }
    }
  }

  /** Draws the action of a row. */
  sample(logProbabilities: FloatArray, row: number, actions: Int32Array, random: RandomStream): void {
    const firstBin = row * this.sizes.length;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      const last = this.sizes[head] - 1;
      let left = random.uniform() - Math.exp(logProbabilities[at]);
      let bin = 0;
      while (left >= 0 && bin < last) left -= Math.exp(logProbabilities[at + ++bin]);
      actions[firstBin + head] = bin;
    }
  }

  /** Writes the likeliest action of a row, given logits or log-probabilities. */
  mode(logits: FloatArray, row: number, actions: Int32Array): void {
    const firstBin = row * this.sizes.length;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      let best = 0;
      for (let bin = 1; bin < this.sizes[head]; bin++) if (logits[at + bin] > logits[at + best]) best = bin;
      actions[firstBin + head] = best;
    }
  }

  /** Log of the probability of a row's action. */
  logProbability(logProbabilities: FloatArray, row: number, actions: Int32Array): number {
    const firstBin = row * this.sizes.length;
    let total = 0;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      total += logProbabilities[at + actions[firstBin + head]];
    }
    return total;
  }

  /**
   * Writes, into a row of `logitGradients`, the gradient of
   * `logProbabilityWeight * log p(action) + entropyWeight * entropy`. Returns the entropy of the row, nats, summed over
   * the heads.
   */
  gradient(
    logProbabilities: FloatArray,
    row: number,
    actions: Int32Array,
    logProbabilityWeight: number,
    entropyWeight: number,
    logitGradients: FloatArray,
  ): number {
    const firstBin = row * this.sizes.length;
    let totalEntropy = 0;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      const end = at + this.sizes[head];
      let entropy = 0;
      for (let k = at; k < end; k++) {
        const probability = Math.exp(logProbabilities[k]);
        this.#probabilities[k - at] = probability;
        entropy -= probability * logProbabilities[k];
      }
      for (let k = at; k < end; k++) {
        const surprise = -logProbabilities[k];
        logitGradients[k] =
          this.#probabilities[k - at] * (entropyWeight * (surprise - entropy) - logProbabilityWeight);
      }
      logitGradients[at + actions[firstBin + head]] += logProbabilityWeight;
      totalEntropy += entropy;
    }
    return totalEntropy;
  }
}

/** Brings the numbers into an order drawn uniformly, in place. Fisher and Yates. */
export function shuffle(order: Int32Array, random: RandomStream): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    const swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}
