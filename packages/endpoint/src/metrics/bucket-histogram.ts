import type { Registry } from 'prom-client';

/** One series of a histogram: a count for each bucket, and the sum. */
interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** Samples at or below a bound and above the one before; the last holds those above all. */
  readonly counts: Float64Array;
  sum: number;
}

/**
 * A Prometheus histogram of few series that takes many equal samples at once: an iteration gives all its sequences the
 * same inter-token latency.
 */
export class BucketHistogram {
  readonly name: string;
  readonly help: string;
  readonly #bounds: readonly number[];
  readonly #series: readonly Series[];

  /** @param series the labels of each series; `observe` takes its index */
  constructor(
    registry: Registry,
    name: string,
    help: string,
    bounds: readonly number[],
    series: readonly Readonly<Record<string, string>>[],
  ) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    this.#series = series.map((labels) => ({
      labels,
      counts: new Float64Array(bounds.length + 1),
      sum: 0,
    }));
    registry.registerMetric(this as unknown as Parameters<Registry['registerMetric']>[0]);
  }

  observe(value: number, samples = 1, series = 0): void {
    const { counts } = this.#series[series];
    let bucket = 0;
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]) bucket++;
    counts[bucket] += samples;
    this.#series[series].sum += value * samples;
  }

  /** The interface that a registry of prom-client expects. */
  async get() {
    const values = this.#series.flatMap(({ labels, counts, sum }) => {
      let total = 0;
      const buckets = Array.from(counts, (count, i) => {
        total += count;
        const le = i < this.#bounds.length ? this.#bounds[i] : '+Inf';
        return { labels: { ...labels, le }, value: total, metricName: `${this.name}_bucket` };
      });
      return [
        ...buckets,
        { labels, value: sum, metricName: `${this.name}_sum` },
        { labels, value: total, metricName: `${this.name}_count` },
      ];
    });
    return { name: this.name, help: this.help, type: 'histogram', aggregator: 'sum', values };
  }

  /** Forgets all samples. */
  reset(): void {
    for (const series of this.#series) {
      series.counts.fill(0);
      series.sum = 0;
    }
  }
}
