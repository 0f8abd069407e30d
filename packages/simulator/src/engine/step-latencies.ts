import { MAX_SPECULATION_DEPTH } from './engine-config.ts';
import { binOf, binStart, type LatencyHistogram } from './latency-histogram.ts';

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
      this.from = Math.max(this.from, n * binStart(bin));
      // A tick earlier than the next bin starts: just before it, the quotient may be rounded up into it.
      this.to = Math.min(this.to, n * (binStart(bin + 1) - 1));
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
