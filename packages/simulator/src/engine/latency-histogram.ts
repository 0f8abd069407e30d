import { MAX_SPECULATION_DEPTH } from './engine-config.ts';
import { TICKS_PER_MS } from './ticks.ts';

/** 2^5 = 32 bins an octave: a bin is about 2 to 3 % wide. */
const MANTISSA_BITS = 5;
const SHIFT = 20 - MANTISSA_BITS;
/** Bins start at 2^12 ticks (64 ns) and end at 2^50 (4.9 hours). */
const FIRST_EXPONENT = 12;
const LAST_EXPONENT = 50;
const FIRST_BIN = (1023 + FIRST_EXPONENT) << MANTISSA_BITS;
const BINS = (LAST_EXPONENT - FIRST_EXPONENT) << MANTISSA_BITS;

const bits = new DataView(new ArrayBuffer(8));

/** The bin that a duration falls into. */
function binOf(ticks: number): number {
  bits.setFloat64(0, ticks);
  const bin = (bits.getInt32(0) >> SHIFT) - FIRST_BIN;
  return bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin;
}

/** Smallest value of each bin, ticks. */
const binStarts = Float64Array.from({ length: BINS + 1 }, (_, bin) => {
  bits.setInt32(0, (bin + FIRST_BIN) << SHIFT);
  bits.setInt32(4, 0);
  return bits.getFloat64(0);
});

/**
 * A histogram of durations in logarithmic bins (32 an octave), for inter-token latencies: millions of samples in a
 * few hundred counters, and a run of iterations is added in closed form.
 */
export class LatencyHistogram {
  private readonly counts = new Float64Array(BINS);
  private lowest = BINS;
  private highest = -1;
  total = 0;

  /** Adds `weight` samples of `ticks`. */
  add(ticks: number, weight: number): void {
    this.addToBin(binOf(ticks), weight);
  }

  /** Adds `weight` samples that fall into `bin`. */
  addToBin(bin: number, weight: number): void {
    this.counts[bin] += weight;
    this.total += weight;
    if (bin < this.lowest) this.lowest = bin;
    if (bin > this.highest) this.highest = bin;
  }

  /** Adds `weight` samples of each of `first`, `first + step`, ... (`count` of them; `step >= 0`). */
  addProgression(first: number, step: number, count: number, weight: number): void {
    let bin = binOf(first);
    const lastBin = binOf(first + step * (count - 1));
    let done = 0;
    while (bin < lastBin) {
      const reached = Math.ceil((binStarts[bin + 1] - first) / step);
      if (reached > done) this.addToBin(bin, (reached - done) * weight);
      done = reached;
      bin++;
    }
    this.addToBin(bin, (count - done) * weight);
  }

  /** The value below which a share `q` of the samples lies, in ms, interpolated within its bin; 0 when empty. */
  quantileMs(q: number): number {
    if (this.total === 0) return 0;
    const target = q * this.total;
    let below = 0;
    for (let bin = this.lowest; bin <= this.highest; bin++) {
      const count = this.counts[bin];
      if (below + count >= target && count > 0) {
        const lower = binStarts[bin];
        const width = binStarts[bin + 1] - lower;
        return (lower + width * ((target - below) / count)) / TICKS_PER_MS;
      }
      below += count;
    }
    return binStarts[this.highest + 1] / TICKS_PER_MS;
  }

  /** Mean, ms, as if samples lay in the middle of their bins; 0 when empty. */
  meanMs(): number {
    let sum = 0;
    for (let bin = this.lowest; bin <= this.highest; bin++) {
      sum += (this.counts[bin] * (binStarts[bin] + binStarts[bin + 1])) / 2;
    }
    return this.total === 0 ? 0 : sum / this.total / TICKS_PER_MS;
  }

  clear(): void {
    if (this.highest >= this.lowest) this.counts.fill(0, this.lowest, this.highest + 1);
    this.lowest = BINS;
    this.highest = -1;
    this.total = 0;
  }

  merge(other: LatencyHistogram): void {
    for (let bin = other.lowest; bin <= other.highest; bin++) {
      if (other.counts[bin] > 0) this.addToBin(bin, other.counts[bin]);
    }
  }

  /** Non-empty bins as (bin, count) pairs, lowest first. */
  entries(): [number, number][] {
    const entries: [number, number][] = [];
    for (let bin = this.lowest; bin <= this.highest; bin++) {
      if (this.counts[bin] > 0) entries.push([bin, this.counts[bin]]);
    }
    return entries;
  }
}

/**
 * The latencies between tokens of consecutive verify steps: a step of t ticks that gives a sequence n tokens gives n
 * samples of t / n. Consecutive steps mostly fall into the same bins, so sequences are only counted by n, and come into
 * the histogram by `flush` and when a step falls out of the bins.
 */
export class StepLatencies {
  /** Sequences that emitted n tokens since the last flush: entry n. */
  private readonly sequences = new Float64Array(MAX_SPECULATION_DEPTH + 2);
  /** Bin of the latencies of sequences that emit n tokens: entry n. */
  private readonly bins = new Int32Array(MAX_SPECULATION_DEPTH + 2);
  private most = 0;
  /** Durations in [from, to) ticks fall into the bins. */
  private from = 0;
  private to = 0;
  declare private readonly histogram: LatencyHistogram;

  constructor(histogram: LatencyHistogram) {
    this.histogram = histogram;
  }

  /** Counter of the sequences, by n, of a step that takes `ticks` and emits `most` tokens a sequence at most. */
  during(ticks: number, most: number): Float64Array {
    if (ticks < this.from || ticks >= this.to || most !== this.most) this.choose(ticks, most);
    return this.sequences;
  }

  /** Adds what has been counted to the histogram. */
  flush(): void {
    for (let n = 1; n <= this.most; n++) {
      const sequences = this.sequences[n];
      if (sequences === 0) continue;
      this.histogram.addToBin(this.bins[n], n * sequences);
      this.sequences[n] = 0;
    }
  }

  private choose(ticks: number, most: number): void {
    this.flush();
    this.most = most;
    this.from = 0;
    this.to = Number.POSITIVE_INFINITY;
    for (let n = 1; n <= most; n++) {
      const bin = binOf(ticks / n);
      this.bins[n] = bin;
      this.from = Math.max(this.from, n * binStarts[bin]);
      // A tick earlier than the next bin starts: just before it, the quotient may be rounded up into it.
      this.to = Math.min(this.to, n * (binStarts[bin + 1] - 1));
    }
  }
}

/** Adds the latencies of one step that takes `ticks`; entry n of `sequences`: those that emit n tokens, `most` at most. */
export function addStep(
  histogram: LatencyHistogram,
  ticks: number,
  sequences: Float64Array,
  most: number,
): void {
  for (let n = 1; n <= most; n++) {
    if (sequences[n] > 0) histogram.add(ticks / n, n * sequences[n]);
  }
}
