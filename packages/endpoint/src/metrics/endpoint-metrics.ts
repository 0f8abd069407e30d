import type { Cluster, Engine } from '@servegym/simulator';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { LatenessWatch } from '../live/clock.ts';
import type { FinishedRequest, LiveObserver, LiveRequest } from '../live/live-server.ts';
import type { EndpointModel } from '../openai/plan-generation.ts';
/*
 * Names, labels and buckets are those of vLLM 0.32 (vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py), so
 * that dashboards, autoscalers and load generators made for vLLM read them as they are. Counters of things that a
 * simulated engine has none of stay at 0. Histograms without buckets are of tokens.
 */
import vllm from './vllm-metrics.json' with { type: 'json' };

interface MetricRow {
  readonly name: string;
  readonly help: string;
  /** Label beside the model's name and the engine. */
  readonly label?: string;
  /** Values of that label. */
  readonly values?: readonly string[];
  readonly buckets?: readonly number[];
  /** False for one series of all engines. Default true. */
  readonly ofEngine?: boolean;
}
type Labels = Readonly<Record<string, string>>;

const LATENESS_BUCKETS_S = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];

/** Gauges of prom-client whose names end as those of counters do. The series beside them tell the same by kind. */
const MISNAMED_GAUGES = ['handles', 'requests', 'resources'].map((kind) => `nodejs_active_${kind}_total`);

/** The endpoint for Prometheus, in simulated time, as vLLM tells its own. */
export class EndpointMetrics implements LiveObserver {
  readonly #registry = new Registry();
  /** Start of the process in s since 1970, for the `_created` series. */
  readonly #createdS = Date.now() / 1000;
  readonly #labels: readonly Labels[];
  readonly #counters: Readonly<Record<keyof typeof vllm.counters, Counter<string>>>;
  readonly #histograms: Readonly<Record<keyof typeof vllm.histograms, Observe>>;
  readonly #lateness: Observe;
  readonly #latenessWatch: LatenessWatch;
  readonly #prefixCaching: boolean;
  /** Cached prompt tokens that no finished request has been credited with. */
  #uncredited = 0;

  constructor(server: Cluster, model: EndpointModel, latenessWatch: LatenessWatch) {
    const registry = this.#registry;
    const modelName = model.names[0];
    this.#latenessWatch = latenessWatch;
    this.#prefixCaching = model.prefixCaching;
    this.#labels = server.engines.map((_, engine) => ({ model_name: modelName, engine: String(engine) }));
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED_GAUGES) registry.removeSingleMetric(name);
    this.#addGauges(server);
    this.#addCacheConfig(server, model);
    this.#counters = recordOf('counters', (row) => this.#counter(row, modelName));
    const tokenBounds = oneTwoFive(model.maxModelLen);
    this.#histograms = recordOf('histograms', (row) =>
      histogram(registry, { buckets: tokenBounds, ...row }, this.#labels),
    );
    const help =
      'How long after they were due tokens were handed out, wall time: the own overhead of the endpoint.';
    const lateness = { name: 'servegym_endpoint_lateness_seconds', help, buckets: LATENESS_BUCKETS_S };
    this.#lateness = histogram(registry, lateness, [{}]);
  }

  #addGauges({ engines }: Cluster): void {
    const read: Record<keyof typeof vllm.gauges, (engine: number, value?: string) => number> = {
      running: (engine) => engines[engine].runningCount,
      waiting: (engine) => engines[engine].waitingCount,
      waitingByReason: (engine, reason) => (reason === 'capacity' ? engines[engine].waitingCount : 0),
      sleepState: (_, state) => (state === 'awake' ? 1 : 0),
      kvCacheUsage: (engine) => engines[engine].kvBlocksUsed / engines[engine].kvBlocksTotal,
    };
    const labels = this.#labels;
    for (const [key, row] of Object.entries(vllm.gauges) as [keyof typeof vllm.gauges, MetricRow][]) {
      new Gauge({
        name: row.name,
        help: row.help,
        labelNames: labelNames(row),
        registers: [this.#registry],
        collect() {
          for (const [engine, of] of labels.entries())
            for (const value of row.values ?? [undefined])
              this.set(withLabel(of, row, value), read[key](engine, value));
        },
      });
    }
  }

  /** Facts of the KV cache, as the labels of a gauge of 1. */
  #addCacheConfig({ engines }: Cluster, model: EndpointModel): void {
    const { blockTokens, maxModelLen, prefixCaching } = model;
    const blocksOfRequest = engines[0].blocksOfRequest(maxModelLen);
    const facts = (kvBlocks: number, engine: number) => ({
      block_size: String(blockTokens),
      num_gpu_blocks: String(kvBlocks),
      enable_prefix_caching: prefixCaching ? 'True' : 'False',
      cache_dtype: 'auto',
      kv_cache_size_tokens: String(Math.floor((kvBlocks / blocksOfRequest) * maxModelLen)),
      kv_cache_max_concurrency: String(kvBlocks / blocksOfRequest),
      engine: String(engine),
    });
    new Gauge({
      name: 'vllm:cache_config_info',
      help: 'Information of the LLMEngine CacheConfig',
      labelNames: Object.keys(facts(0, 0)),
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const [engine, { kvBlocksTotal }] of engines.entries())
          this.set(facts(kvBlocksTotal, engine), 1);
      },
    });
  }

  /** A counter whose series are all there from the start, at 0. */
  #counter(row: MetricRow, modelName: string): Counter<string> {
    const { name, help, ofEngine = true } = row;
    const counter = new Counter({ name, help, labelNames: labelNames(row), registers: [this.#registry] });
    for (const of of ofEngine ? this.#labels : [{ model_name: modelName }])
      for (const value of row.values ?? [undefined]) counter.inc(withLabel(of, row, value), 0);
    return counter;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async render(): Promise<string> {
    const metrics = await this.#registry.getMetricsAsJSON();
    return `${await this.#registry.metrics()}${metrics.map((metric) => this.#created(metric)).join('')}`;
  }

  /** The `_created` series of a counter or histogram, as Python's client of Prometheus adds them. */
  #created({ name, type, values = [] }: Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]): string {
    const kind = String(type);
    if (!name.startsWith('vllm:') || (kind !== 'counter' && kind !== 'histogram')) return '';
    const created = `${kind === 'counter' ? name.replace(/_total$/, '') : name}_created`;
    const series = new Set(
      values.map(({ labels }) =>
        Object.entries(labels)
          .filter(([label]) => label !== 'le')
          .map(([label, value]) => `${label}="${escapeLabel(String(value))}"`)
          .join(','),
      ),
    );
    const lines = Array.from(series, (labels) => `${created}{${labels}} ${this.#createdS}\n`);
    return `# HELP ${created} Start of the process.\n# TYPE ${created} gauge\n${lines.join('')}`;
  }

  onSubmitted({ promptTokens, outputTokens, maxTokens, choices }: LiveRequest): void {
    if (this.#prefixCaching) this.#counters.cacheQueries.inc(this.#labels[0], promptTokens);
    this.#histograms.maxTokens(outputTokens);
    this.#histograms.askedTokens(maxTokens);
    this.#histograms.choices(choices);
  }

  onIteration(iteration: Engine['counters'], engine: number): void {
    const { prefillTokens, outputTokens } = iteration;
    const cachedTokens = iteration.cachedTokens + iteration.loadedTokens;
    const of = this.#labels[engine];
    this.#counters.promptTokens.inc(of, prefillTokens + cachedTokens);
    this.#counters.promptTokensBySource.inc({ ...of, source: 'local_compute' }, prefillTokens);
    this.#counters.generationTokens.inc(of, outputTokens);
    if (iteration.preemptions > 0) this.#counters.preemptions.inc(of, iteration.preemptions);
    if (cachedTokens > 0) {
      this.#counters.cacheHits.inc(of, cachedTokens);
      this.#counters.cachedPromptTokens.inc(of, cachedTokens);
      this.#counters.cachedByTier.inc({ ...of, source: 'device' }, cachedTokens);
      this.#counters.promptTokensBySource.inc({ ...of, source: 'local_cache_hit' }, cachedTokens);
      this.#uncredited += cachedTokens;
    }
    if (iteration.draftTokens > 0) {
      this.#counters.drafts.inc(of, iteration.draftTokens);
      this.#counters.acceptedDrafts.inc(of, iteration.acceptedTokens);
    }
    this.#histograms.iterationTokens(prefillTokens + outputTokens, 1, engine);
  }

  onFirstToken(ttftMs: number, engine: number): void {
    this.#histograms.ttft(ttftMs / 1000, 1, engine);
  }

  onInterToken(gapMs: number, tokens: number, engine: number): void {
    this.#histograms.interToken(gapMs / 1000, tokens, engine);
  }

  onFinished(
    { request, queueMs, ttftMs, tpotMs, e2eMs, preemptions }: FinishedRequest,
    engine: number,
  ): void {
    // The engine counts cached tokens over all requests: the sum over requests is right, the split about right.
    const cached = Math.min(this.#uncredited, request.promptTokens - 1);
    this.#uncredited -= cached;
    this.#histograms.prefillComputed(request.promptTokens - cached, 1, engine);
    this.#histograms.requestPreemptions(preemptions, 1, engine);
    this.#histograms.e2e(e2eMs / 1000, 1, engine);
    this.#histograms.queue(queueMs / 1000, 1, engine);
    this.#histograms.inference((e2eMs - queueMs) / 1000, 1, engine);
    this.#histograms.prefill((ttftMs - queueMs) / 1000, 1, engine);
    this.#histograms.decode((e2eMs - ttftMs) / 1000, 1, engine);
    if (!Number.isNaN(tpotMs)) this.#histograms.timePerOutputToken(tpotMs / 1000, 1, engine);
    this.#histograms.requestPrompt(request.promptTokens, 1, engine);
    this.#histograms.requestGeneration(request.outputTokens, 1, engine);
    this.#counters.success.inc({ ...this.#labels[engine], finished_reason: request.finishReason });
  }

  onAborted(): void {
    this.#counters.success.inc({ ...this.#labels[0], finished_reason: 'abort' });
  }

  onLateness(wallMs: number): void {
    this.#lateness(wallMs / 1000);
    this.#latenessWatch.add(wallMs);
  }
}

function labelNames({ label, ofEngine = true }: MetricRow): string[] {
  return ['model_name', ...(ofEngine ? ['engine'] : []), ...(label === undefined ? [] : [label])];
}

function withLabel(labels: Labels, { label }: MetricRow, value: string | undefined): Labels {
  return label === undefined || value === undefined ? labels : { ...labels, [label]: value };
}

function recordOf<Kind extends keyof typeof vllm, Metric>(
  kind: Kind,
  make: (row: MetricRow) => Metric,
): Record<keyof (typeof vllm)[Kind], Metric> {
  const rows: [string, MetricRow][] = Object.entries(vllm[kind]);
  return Object.fromEntries(rows.map(([key, row]) => [key, make(row)])) as never;
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`));
}

/** 1, 2, 5, 10, 20 ... up to `most`. */
function oneTwoFive(most: number): number[] {
  const bounds: number[] = [];
  for (let power = 1; ; power *= 10) {
    for (const mantissa of [1, 2, 5]) {
      if (mantissa * power > most) return bounds;
      bounds.push(mantissa * power);
    }
  }
}

/** Takes a sample, or several equal ones, of an engine. */
type Observe = (value: number, samples?: number, engine?: number) => void;

/** A histogram with a series for each of these labels, all there from the start. */
function histogram(
  registry: Registry,
  { name, help, buckets }: Required<Pick<MetricRow, 'name' | 'help' | 'buckets'>>,
  series: readonly Labels[],
): Observe {
  const own = new Histogram({
    name,
    help,
    buckets: [...buckets],
    labelNames: Object.keys(series[0]),
    registers: [registry],
  });
  for (const labels of series) own.zero(labels);
  const bound = series.map((labels) => own.labels(labels));
  return (value, samples = 1, engine = 0) => {
    for (let i = 0; i < samples; i++) bound[engine].observe(value);
  };
}
