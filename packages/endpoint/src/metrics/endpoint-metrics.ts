import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { LatenessWatch } from '../live/lateness-watch.ts';
import type { FinishedRequest, LiveIteration, LiveObserver, LiveRequest } from '../live/live-server.ts';
import type { SimulatedServer } from '../live/simulated-server.ts';
import { BucketHistogram } from './bucket-histogram.ts';

/*
 * Names, labels and buckets are those of vLLM 0.32 (vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py), so
 * that dashboards, autoscalers and load generators made for vLLM read them as they are.
 */

const TTFT_BUCKETS_S = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
  2560,
];
const ITL_BUCKETS_S = [
  0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
];
const LATENCY_BUCKETS_S = [
  0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
];
const ITERATION_BUCKETS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
const PREEMPTION_BUCKETS = [1, 2, 3, 4, 5, 10, 20];
const CHOICES_BUCKETS = [1, 2, 5, 10, 20];
const LATENESS_BUCKETS_S = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];

/** Gauges of prom-client whose names end as those of counters do. The series beside them tell the same by kind. */
const MISNAMED_GAUGES = ['handles', 'requests', 'resources'].map((kind) => `nodejs_active_${kind}_total`);

/** Counters of vLLM for things that a simulated engine has none of: clients find them at 0. */
const ABSENT_COUNTERS: readonly (readonly [name: string, help: string])[] = [
  [
    'estimated_flops_per_gpu',
    'Estimated number of floating point operations per GPU (for Model Flops Utilization calculations).',
  ],
  [
    'estimated_read_bytes_per_gpu',
    'Estimated number of bytes read from memory per GPU (for Model Flops Utilization calculations).',
  ],
  [
    'estimated_write_bytes_per_gpu',
    'Estimated number of bytes written to memory per GPU (for Model Flops Utilization calculations).',
  ],
  [
    'external_prefix_cache_queries',
    'External prefix cache queries from KV connector cross-instance cache sharing, in terms of number of queried tokens.',
  ],
  [
    'external_prefix_cache_hits',
    'External prefix cache hits from KV connector cross-instance cache sharing, in terms of number of cached tokens.',
  ],
  ['mm_cache_queries', 'Multi-modal cache queries, in terms of number of queried items.'],
  ['mm_cache_hits', 'Multi-modal cache hits, in terms of number of cached items.'],
];
const PROMPT_SOURCES = ['local_compute', 'local_cache_hit', 'external_kv_transfer'];
const CACHE_TIERS = ['device', 'host', 'p2p', 'disk', 'external_unspecified'];
const FINISHED_REASONS = ['stop', 'length', 'abort', 'error', 'repetition'];
const REJECTION_REASONS = ['max_num_queued_reqs', 'max_num_queued_tokens'];
const SLEEP_STATES = ['awake', 'weights_offloaded', 'discard_all'];

export interface EndpointMetricsOptions {
  readonly modelName: string;
  readonly maxModelLen: number;
  readonly blockTokens: number;
  readonly prefixCaching: boolean;
  readonly latenessWatch: LatenessWatch;
}

/** The endpoint for Prometheus, in simulated time, as vLLM tells its own. */
export class EndpointMetrics implements LiveObserver {
  readonly #registry = new Registry();
  /** Start of the process in s since 1970, for the `_created` series. */
  readonly #createdS = Date.now() / 1000;
  readonly #promptTokens: Counter<string>;
  readonly #promptTokensBySource: Counter<string>;
  readonly #cachedPromptTokens: Counter<string>;
  readonly #cachedByTier: Counter<string>;
  readonly #generationTokens: Counter<string>;
  readonly #preemptions: Counter<string>;
  readonly #cacheQueries: Counter<string>;
  readonly #cacheHits: Counter<string>;
  readonly #drafts: Counter<string>;
  readonly #acceptedDrafts: Counter<string>;
  readonly #success: Counter<string>;
  readonly #labels: readonly Readonly<Record<string, string>>[];
  readonly #ttft: BucketHistogram;
  readonly #interToken: BucketHistogram;
  readonly #timePerOutputToken: BucketHistogram;
  readonly #e2e: BucketHistogram;
  readonly #queue: BucketHistogram;
  readonly #inference: BucketHistogram;
  readonly #prefill: BucketHistogram;
  readonly #decode: BucketHistogram;
  readonly #requestPrompt: BucketHistogram;
  readonly #requestGeneration: BucketHistogram;
  readonly #maxTokens: BucketHistogram;
  readonly #askedTokens: BucketHistogram;
  readonly #choices: BucketHistogram;
  readonly #requestPreemptions: BucketHistogram;
  readonly #prefillComputed: BucketHistogram;
  readonly #iterationTokens: BucketHistogram;
  readonly #lateness: BucketHistogram;
  readonly #latenessWatch: LatenessWatch;
  readonly #prefixCaching: boolean;
  /** Cached prompt tokens that no finished request has been credited with. */
  #uncredited = 0;

  constructor(server: SimulatedServer, options: EndpointMetricsOptions) {
    const registry = this.#registry;
    this.#latenessWatch = options.latenessWatch;
    const { modelName, maxModelLen, blockTokens } = options;
    const labels = server.engines.map((_, engine) => ({ model_name: modelName, engine: String(engine) }));
    this.#labels = labels;
    this.#prefixCaching = options.prefixCaching;
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED_GAUGES) registry.removeSingleMetric(name);

    const gauge = (name: string, help: string, read: (engine: number) => number) =>
      new Gauge({
        name,
        help,
        labelNames: ['model_name', 'engine'],
        registers: [registry],
        collect() {
          for (const [engine, of] of labels.entries()) this.set(of, read(engine));
        },
      });
    gauge(
      'vllm:num_requests_running',
      'Number of requests in model execution batches.',
      (engine) => server.engines[engine].runningCount,
    );
    gauge(
      'vllm:num_requests_waiting',
      'Number of requests waiting to be processed.',
      (engine) => server.engines[engine].waitingCount,
    );
    const labelled = (
      name: string,
      help: string,
      label: string,
      read: (engine: number, value: string) => number,
      values: readonly string[],
    ) =>
      new Gauge({
        name,
        help,
        labelNames: ['model_name', 'engine', label],
        registers: [registry],
        collect() {
          for (const [engine, of] of labels.entries()) {
            for (const value of values) this.set({ ...of, [label]: value }, read(engine, value));
          }
        },
      });
    labelled(
      'vllm:num_requests_waiting_by_reason',
      "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals vllm:num_requests_waiting.",
      'reason',
      (engine, reason) => (reason === 'capacity' ? server.engines[engine].waitingCount : 0),
      ['capacity', 'deferred'],
    );
    labelled(
      'vllm:engine_sleep_state',
      'Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.',
      'sleep_state',
      (_, state) => (state === 'awake' ? 1 : 0),
      SLEEP_STATES,
    );
    gauge('vllm:kv_cache_usage_perc', 'KV-cache usage. 1 means 100 percent usage.', (engine) => {
      const { kvBlocksUsed, kvBlocksTotal } = server.engines[engine];
      return kvBlocksUsed / kvBlocksTotal;
    });
    new Gauge({
      name: 'vllm:cache_config_info',
      help: 'Information of the LLMEngine CacheConfig',
      labelNames: [
        'block_size',
        'num_gpu_blocks',
        'enable_prefix_caching',
        'cache_dtype',
        'kv_cache_size_tokens',
        'kv_cache_max_concurrency',
        'engine',
      ],
      registers: [registry],
      collect() {
        this.reset();
        for (const [engine, { kvBlocksTotal }] of server.engines.entries()) {
          this.set(
            {
              block_size: String(blockTokens),
              num_gpu_blocks: String(kvBlocksTotal),
              enable_prefix_caching: options.prefixCaching ? 'True' : 'False',
              cache_dtype: 'auto',
              kv_cache_size_tokens: String(kvBlocksTotal * blockTokens),
              kv_cache_max_concurrency: String((kvBlocksTotal * blockTokens) / maxModelLen),
              engine: String(engine),
            },
            1,
          );
        }
      },
    });

    const counterOf = (name: string, help: string, label?: string, values: readonly string[] = ['']) => {
      const counter = new Counter({
        name,
        help,
        labelNames: ['model_name', 'engine', ...(label === undefined ? [] : [label])],
        registers: [registry],
      });
      for (const of of labels) {
        for (const value of values) counter.inc({ ...of, ...(label !== undefined && { [label]: value }) }, 0);
      }
      return counter;
    };
    for (const [name, help] of ABSENT_COUNTERS) counterOf(`vllm:${name}_total`, help);
    const rejections = new Counter({
      name: 'vllm:admission_rejections_total',
      help: 'Number of admission attempts rejected by a queue limit, by reason.',
      labelNames: ['model_name', 'reason'],
      registers: [registry],
    });
    for (const reason of REJECTION_REASONS) rejections.inc({ model_name: modelName, reason }, 0);
    this.#promptTokensBySource = counterOf(
      'vllm:prompt_tokens_by_source_total',
      'Number of prompt tokens by source.',
      'source',
      PROMPT_SOURCES,
    );
    this.#cachedPromptTokens = counterOf(
      'vllm:prompt_tokens_cached_total',
      'Number of cached prompt tokens (local + external).',
    );
    this.#cachedByTier = counterOf(
      'vllm:prompt_tokens_cached_by_source_total',
      'Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.',
      'source',
      CACHE_TIERS,
    );
    this.#promptTokens = counterOf('vllm:prompt_tokens_total', 'Number of prefill tokens processed.');
    this.#generationTokens = counterOf(
      'vllm:generation_tokens_total',
      'Number of generation tokens processed.',
    );
    this.#preemptions = counterOf(
      'vllm:num_preemptions_total',
      'Cumulative number of preemption from the engine.',
    );
    this.#cacheQueries = counterOf(
      'vllm:prefix_cache_queries_total',
      'Prefix cache queries, in terms of number of queried tokens.',
    );
    this.#cacheHits = counterOf(
      'vllm:prefix_cache_hits_total',
      'Prefix cache hits, in terms of number of cached tokens.',
    );
    this.#drafts = counterOf('vllm:spec_decode_num_draft_tokens_total', 'Number of draft tokens.');
    this.#acceptedDrafts = counterOf(
      'vllm:spec_decode_num_accepted_tokens_total',
      'Number of accepted tokens.',
    );
    this.#success = counterOf(
      'vllm:request_success_total',
      'Count of successfully processed requests.',
      'finished_reason',
      FINISHED_REASONS,
    );

    const histogram = (name: string, help: string, bounds: readonly number[]) =>
      new BucketHistogram(registry, name, help, bounds, labels);
    const tokenBounds = oneTwoFive(maxModelLen);
    this.#ttft = histogram(
      'vllm:time_to_first_token_seconds',
      'Histogram of time to first token in seconds.',
      TTFT_BUCKETS_S,
    );
    this.#interToken = histogram(
      'vllm:inter_token_latency_seconds',
      'Histogram of inter-token latency in seconds.',
      ITL_BUCKETS_S,
    );
    this.#timePerOutputToken = histogram(
      'vllm:request_time_per_output_token_seconds',
      'Histogram of time_per_output_token_seconds per request.',
      ITL_BUCKETS_S,
    );
    this.#e2e = histogram(
      'vllm:e2e_request_latency_seconds',
      'Histogram of e2e request latency in seconds.',
      LATENCY_BUCKETS_S,
    );
    this.#queue = histogram(
      'vllm:request_queue_time_seconds',
      'Histogram of time spent in WAITING phase for request.',
      LATENCY_BUCKETS_S,
    );
    this.#inference = histogram(
      'vllm:request_inference_time_seconds',
      'Histogram of time spent in RUNNING phase for request.',
      LATENCY_BUCKETS_S,
    );
    this.#prefill = histogram(
      'vllm:request_prefill_time_seconds',
      'Histogram of time spent in PREFILL phase for request.',
      LATENCY_BUCKETS_S,
    );
    this.#decode = histogram(
      'vllm:request_decode_time_seconds',
      'Histogram of time spent in DECODE phase for request.',
      LATENCY_BUCKETS_S,
    );
    this.#requestPrompt = histogram(
      'vllm:request_prompt_tokens',
      'Number of prefill tokens processed.',
      tokenBounds,
    );
    this.#requestGeneration = histogram(
      'vllm:request_generation_tokens',
      'Number of generation tokens processed.',
      tokenBounds,
    );
    this.#maxTokens = histogram(
      'vllm:request_max_num_generation_tokens',
      'Histogram of maximum number of requested generation tokens.',
      tokenBounds,
    );
    this.#askedTokens = histogram(
      'vllm:request_params_max_tokens',
      'Histogram of the max_tokens request parameter.',
      tokenBounds,
    );
    this.#choices = histogram(
      'vllm:request_params_n',
      'Histogram of the n request parameter.',
      CHOICES_BUCKETS,
    );
    this.#requestPreemptions = histogram(
      'vllm:request_num_preemptions',
      'Histogram of the number of times a request was preempted.',
      PREEMPTION_BUCKETS,
    );
    this.#prefillComputed = histogram(
      'vllm:request_prefill_kv_computed_tokens',
      'Histogram of new KV tokens computed during prefill (excluding cached tokens).',
      tokenBounds,
    );
    this.#iterationTokens = histogram(
      'vllm:iteration_tokens_total',
      'Histogram of number of tokens per engine_step.',
      ITERATION_BUCKETS,
    );
    this.#lateness = new BucketHistogram(
      registry,
      'servegym_endpoint_lateness_seconds',
      'How long after they were due tokens were handed out, wall time: the own overhead of the endpoint.',
      LATENESS_BUCKETS_S,
      [{}],
    );
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The text for `GET /metrics`. */
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
    if (this.#prefixCaching) this.#cacheQueries.inc(this.#labels[0], promptTokens);
    this.#maxTokens.observe(outputTokens);
    this.#askedTokens.observe(maxTokens);
    this.#choices.observe(choices);
  }

  onIteration(iteration: LiveIteration): void {
    const { engine, prefillTokens, outputTokens } = iteration;
    const of = this.#labels[engine];
    this.#promptTokens.inc(of, prefillTokens + iteration.cachedTokens);
    this.#promptTokensBySource.inc({ ...of, source: 'local_compute' }, prefillTokens);
    this.#generationTokens.inc(of, outputTokens);
    if (iteration.preemptions > 0) this.#preemptions.inc(of, iteration.preemptions);
    if (iteration.cachedTokens > 0) {
      this.#cacheHits.inc(of, iteration.cachedTokens);
      this.#cachedPromptTokens.inc(of, iteration.cachedTokens);
      this.#cachedByTier.inc({ ...of, source: 'device' }, iteration.cachedTokens);
      this.#promptTokensBySource.inc({ ...of, source: 'local_cache_hit' }, iteration.cachedTokens);
      this.#uncredited += iteration.cachedTokens;
    }
    if (iteration.draftTokens > 0) {
      this.#drafts.inc(of, iteration.draftTokens);
      this.#acceptedDrafts.inc(of, iteration.acceptedTokens);
    }
    this.#iterationTokens.observe(prefillTokens + outputTokens, 1, engine);
  }

  onFirstToken(ttftMs: number, engine: number): void {
    this.#ttft.observe(ttftMs / 1000, 1, engine);
  }

  onInterToken(gapMs: number, tokens: number, engine: number): void {
    this.#interToken.observe(gapMs / 1000, tokens, engine);
  }

  onFinished(
    { request, queueMs, ttftMs, tpotMs, e2eMs, preemptions }: FinishedRequest,
    engine: number,
  ): void {
    // The engine counts cached tokens over all requests: the sum over requests is right, the split about right.
    const cached = Math.min(this.#uncredited, request.promptTokens - 1);
    this.#uncredited -= cached;
    this.#prefillComputed.observe(request.promptTokens - cached, 1, engine);
    this.#requestPreemptions.observe(preemptions, 1, engine);
    this.#e2e.observe(e2eMs / 1000, 1, engine);
    this.#queue.observe(queueMs / 1000, 1, engine);
    this.#inference.observe((e2eMs - queueMs) / 1000, 1, engine);
    this.#prefill.observe((ttftMs - queueMs) / 1000, 1, engine);
    this.#decode.observe((e2eMs - ttftMs) / 1000, 1, engine);
    if (!Number.isNaN(tpotMs)) this.#timePerOutputToken.observe(tpotMs / 1000, 1, engine);
    this.#requestPrompt.observe(request.promptTokens, 1, engine);
    this.#requestGeneration.observe(request.outputTokens, 1, engine);
    this.#success.inc({ ...this.#labels[engine], finished_reason: request.finishReason });
  }

  onAborted(): void {
    this.#success.inc({ ...this.#labels[0], finished_reason: 'abort' });
  }

  onLateness(wallMs: number): void {
    this.#lateness.observe(wallMs / 1000);
    this.#latenessWatch.add(wallMs);
  }
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
