/** Moments of several features over all rows seen so far. */
export interface Moments {
  readonly rows: number;
  readonly mean: readonly number[];
  /** Sum of the squared distances from the mean. */
  readonly spread: readonly number[];
}

/** Mean and standard deviation of each feature. */
export interface FeatureScale {
  readonly mean: Float64Array;
  readonly deviation: Float64Array;
}

/** Rows further than this many standard deviations off the mean are clipped. */
const NORMALIZED_CLIP = 10;
/** Added to the variance, so that a feature that has never moved does not explode when it first does. */
const EPSILON = 1e-4;

/** Writes row `fromRow` of `from`, at mean 0 and variance 1, as row `toRow` of `to`. */
export function normalizeRow(
  from: ArrayLike<number>,
  fromRow: number,
  { mean, deviation }: FeatureScale,
  to: Float32Array | Float64Array,
  toRow: number,
): void {
  const size = mean.length;
  for (let i = 0; i < size; i++) {
    const value = (from[fromRow * size + i] - mean[i]) / deviation[i];
    to[toRow * size + i] = Math.max(-NORMALIZED_CLIP, Math.min(NORMALIZED_CLIP, value));
  }
}

/** Moments of features over all rows seen so far (Welford's update), to bring them to mean 0 and variance 1. */
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
      const distance = from[at] - this.#mean[i];
      this.#mean[i] += distance / this.#rows;
      this.#spread[i] += distance * (from[at] - this.#mean[i]);
    }
  }

  /** Standard deviation of a feature; 1 until two rows have been seen. */
  deviation(feature: number): number {
    return this.#rows < 2 ? 1 : Math.sqrt(this.#spread[feature] / this.#rows + EPSILON);
  }

  /** Writes what rows are to be normalized by. */
  writeScale(mean: Float64Array, deviation: Float64Array): void {
    mean.set(this.#mean);
    for (let i = 0; i < this.size; i++) deviation[i] = this.deviation(i);
  }

  /** The current mean and deviation of each feature. */
  scale(): FeatureScale {
    const scale = { mean: new Float64Array(this.size), deviation: new Float64Array(this.size) };
    this.writeScale(scale.mean, scale.deviation);
    return scale;
  }
}
