/** Moments of several features over all rows seen so far. */
export interface Moments {
  readonly rows: number;
  readonly mean: readonly number[];
  /** Sum of the squared distances from the mean. */
  readonly spread: readonly number[];
}

/** Rows further than this many standard deviations off the mean are clipped. */
const CLIP = 10;
/** Added to the variance, so that a feature that has never moved does not explode when it first does. */
const EPSILON = 1e-4;

/** Brings features to mean 0 and variance 1, going by all rows seen so far (Welford's update). */
export class RunningNormalizer {
  readonly size: number;
  #rows = 0;
  readonly #mean: Float64Array;
  readonly #spread: Float64Array;

  constructor(size: number) {
    this.size = size;
    this.#mean = new Float64Array(size);
    this.#spread = new Float64Array(size);
  }

  static from({ rows, mean, spread }: Moments): RunningNormalizer {
    const normalizer = new RunningNormalizer(mean.length);
    normalizer.#rows = rows;
    normalizer.#mean.set(mean);
    normalizer.#spread.set(spread);
    return normalizer;
  }

  get moments(): Moments {
    return { rows: this.#rows, mean: [...this.#mean], spread: [...this.#spread] };
  }

  /** Takes a row into account. */
  observe(from: ArrayLike<number>, row: number): void {
    this.#rows++;
    for (let i = 0, at = row * this.size; i < this.size; i++, at++) {
      const distance = from[at]! - this.#mean[i]!;
      this.#mean[i]! += distance / this.#rows;
      this.#spread[i]! += distance * (from[at]! - this.#mean[i]!);
    }
  }

  /** Standard deviation of a feature; 1 until two rows have been seen. */
  deviation(feature: number): number {
    return this.#rows < 2 ? 1 : Math.sqrt(this.#spread[feature]! / this.#rows + EPSILON);
  }

  /** Writes row `fromRow` of `from`, normalized, as row `toRow` of `to`. */
  normalize(from: ArrayLike<number>, fromRow: number, to: Float32Array | Float64Array, toRow: number): void {
    for (let i = 0; i < this.size; i++) {
      const value = (from[fromRow * this.size + i]! - this.#mean[i]!) / this.deviation(i);
      to[toRow * this.size + i] = Math.max(-CLIP, Math.min(CLIP, value));
    }
  }
}
