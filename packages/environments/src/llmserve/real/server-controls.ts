import { EnvironmentError } from '@servegym/openenv/definition';
import { z } from 'zod';
import type { ServeAction, ServeKnob } from '../schema.ts';
import { servingConfig } from '../serve-episode.ts';
import {
  connectionFailure,
  describeFailure,
  failureCode,
  httpFailure,
  type RealClient,
  type RealFailure,
} from './real-client.ts';
import type { RealSettings } from './real-settings.ts';

/** Effect of an action at a real server. */
export interface AppliedAction {
  /** Place where each knob acts: `client` holds requests back, `request` is a field of each, `server` was told. */
  readonly applied: Partial<Record<ServeKnob, 'client' | 'request' | 'server'>>;
  /** The other knobs, and why they have no effect. */
  readonly notApplied: Partial<Record<ServeKnob, string>>;
  /** Requests in flight at most; `null` when the server limits them itself. */
  readonly concurrency: number | null;
  /** True when requests carry their class as their priority. */
  readonly sendsPriority: boolean;
  /** Knobs of a `servegym endpoint` as it reports them. */
  readonly endpoint: EndpointKnobs | null;
}

const NO_ROUTE = 'the server has no run-time route for it';

/** Applies actions to a real server as far as it lets itself be told, and reads what it tells of itself. */
export class ServerControls {
  readonly #settings: RealSettings;
  readonly #refusedFields: RealClient['refusedFields'];
  /** Address of `/metrics` and `/admin`: that of the API without `/v1`. */
  readonly #root: string;

  /** @param refusedFields fields that the server does not take, as they become known */
  constructor(settings: RealSettings, refusedFields: RealClient['refusedFields']) {
    this.#refusedFields = refusedFields;
    this.#settings = settings;
    this.#root = settings.baseUrl.replace(/\/v1$/, '');
  }

  /** @throws EnvironmentError `REAL_SERVER_UNREACHABLE` or `REAL_SERVER_REFUSED` for the knobs of a `servegym endpoint` */
  async apply(action: ServeAction, signal: AbortSignal): Promise<AppliedAction> {
    if (this.#settings.provider === 'servegym') return this.#applyToEndpoint(action, signal);
    const refusal = this.#refusedFields.get('priority');
    const takesPriority = this.#settings.provider === 'vllm' && refusal === undefined;
    const noPriority =
      refusal === undefined
        ? 'the API has no priorities that act at once'
        : `the server refused the field: ${refusal}`;
    return {
      applied: { batch_cap: 'client', ...(takesPriority && { priority_routing: 'request' }) },
      notApplied: {
        kv_budget_fraction: NO_ROUTE,
        speculation_depth: NO_ROUTE,
        quantization_tier: NO_ROUTE,
        prefill_decode_split: NO_ROUTE,
        ...(!takesPriority && { priority_routing: noPriority }),
      },
      concurrency: action.batch_cap,
      sendsPriority: takesPriority && action.priority_routing,
      endpoint: null,
    };
  }

  /** Figures of the server at `/metrics`; `null` where there are none or they are not understood. */
  async read(signal: AbortSignal): Promise<VllmReading | null> {
    if (this.#settings.provider === 'openai') return null;
    return readVllmMetrics(this.#root, signal);
  }

  async #applyToEndpoint(action: ServeAction, signal: AbortSignal): Promise<AppliedAction> {
    const config = servingConfig(action);
    const wanted: readonly (readonly [ServeKnob, object])[] = [
      ['batch_cap', { max_num_seqs: config.maxNumSeqs }],
      ['kv_budget_fraction', { kv_budget_fraction: config.kvBudgetFraction }],
      ['speculation_depth', { speculation_depth: config.speculationDepth }],
      ['quantization_tier', { weights: config.weights }],
      ['prefill_decode_split', { split: config.split }],
      ['priority_routing', { scheduling_policy: config.schedulingPolicy }],
    ];
    const notApplied: Partial<Record<ServeKnob, string>> = {};
    /** Answers why the endpoint does not take the changes; `null` when it does. */
    const write = async (changes: object): Promise<string | null> => {
      const init = { method: 'PATCH', body: JSON.stringify(changes), signal };
      const { failure } = await this.#exchange(init);
      if (failure !== undefined && failure.status !== 400) throw this.#refusal(failure);
      return failure?.sentence ?? null;
    };
    if ((await write(Object.assign({}, ...wanted.map(([, change]) => change)))) !== null) {
      // One of them does not fit the server: the others still do.
      for (const [knob, change] of wanted) {
        const refused = await write(change);
        if (refused !== null) notApplied[knob] = refused;
      }
    }
    const applied = wanted.flatMap(([knob]) => (knob in notApplied ? [] : [[knob, 'server']]));
    return {
      applied: Object.fromEntries(applied),
      notApplied,
      concurrency: null,
      sendsPriority: action.priority_routing,
      endpoint: await this.#readKnobs(signal),
    };
  }

  async #readKnobs(signal: AbortSignal): Promise<EndpointKnobs> {
    const { body, failure } = await this.#exchange({ method: 'GET', signal });
    if (failure !== undefined) throw this.#refusal(failure);
    const read = endpointKnobs.safeParse(body);
    if (read.success) return read.data;
    const sentence = 'The answer is not that of a servegym endpoint';
    throw this.#refusal({ outcome: 'http_200', status: 200, sentence });
  }

  /** Asks for the knobs of a `servegym endpoint`, or changes them. */
  async #exchange(init: RequestInit): Promise<{ readonly body?: unknown; readonly failure?: RealFailure }> {
    const authorization = `Bearer ${this.#settings.apiKey}`;
    try {
      const answer = await fetch(this.#knobsUrl, {
        ...init,
        redirect: 'manual',
        headers: { 'content-type': 'application/json', authorization },
      });
      return answer.ok ? { body: await answer.json() } : { failure: await httpFailure(answer) };
    } catch (error) {
      // An answer that is no JSON.
      if (error instanceof SyntaxError) return {};
      return { failure: connectionFailure(error) };
    }
  }

  #refusal(failure: RealFailure): EnvironmentError {
    return new EnvironmentError(
      failureCode(failure) ?? 'REAL_SERVER_REFUSED',
      describeFailure(failure, this.#knobsUrl, this.#settings.apiKey),
    );
  }

  get #knobsUrl(): string {
    return `${this.#root}/admin/knobs`;
  }
}

/** Answer of `GET /admin/knobs` of a `servegym endpoint`, as far as it is needed here. */
const endpointKnobs = z.object({
  quality: z.number(),
  usd_per_hour: z.number(),
  engines: z.array(
    z.object({
      memory_gib: z.object({
        weights: z.number(),
        draft: z.number(),
        overhead: z.number(),
        kv_pool: z.number(),
        limit: z.number().positive(),
      }),
    }),
  ),
});
type EndpointKnobs = z.infer<typeof endpointKnobs>;

/** Figures of a vLLM-compatible server at one moment. */
export type VllmReading = Readonly<NonNullable<Awaited<ReturnType<typeof readVllmMetrics>>>>;

const LONGEST_WAIT_MS = 2000;

/**
 * Reads `/metrics` of a vLLM-compatible server; `null` when it has none, does not answer in time, or lacks what every
 * vLLM has. What only some have (drafts) counts 0 where it is missing.
 */
export async function readVllmMetrics(root: string, signal: AbortSignal) {
  let text: string;
  try {
    const answer = await fetch(`${root}/metrics`, {
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(LONGEST_WAIT_MS)]),
    });
    if (!answer.ok) return null;
    text = await answer.text();
  } catch {
    return null;
  }
  const samples = (name: string): number[] =>
    Array.from(text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm')), ([, value]) =>
      Number(value),
    );
  const sum = (name: string) => samples(name).reduce((total, value) => total + value, 0);
  const usage = samples('vllm:kv_cache_usage_perc');
  if (usage.length === 0) return null;
  const [cache = ''] = /^vllm:cache_config_info\{.*/m.exec(text) ?? [];
  const cacheLabel = (name: string) => Number(new RegExp(`[{,]${name}="(\\d+)"`).exec(cache)?.[1] ?? 0);
  return {
    running: sum('vllm:num_requests_running'),
    waiting: sum('vllm:num_requests_waiting'),
    engines: usage.length,
    /** Mean over its engines. */
    kvUsage: usage.reduce((total, value) => total + value, 0) / usage.length,
    /** Tokens that the KV pool of an engine holds; 0 when it does not tell. */
    kvTokens: cacheLabel('num_gpu_blocks') * cacheLabel('block_size'),
    // Since the server's start.
    preemptions: sum('vllm:num_preemptions_total'),
    promptTokens: sum('vllm:prompt_tokens_total'),
    generationTokens: sum('vllm:generation_tokens_total'),
    draftTokens: sum('vllm:spec_decode_num_draft_tokens_total'),
    acceptedTokens: sum('vllm:spec_decode_num_accepted_tokens_total'),
    // Time to first token and inter-token latency: sum, s, and count.
    ttftSumS: sum('vllm:time_to_first_token_seconds_sum'),
    ttftCount: sum('vllm:time_to_first_token_seconds_count'),
    itlSumS: sum('vllm:inter_token_latency_seconds_sum'),
    itlCount: sum('vllm:inter_token_latency_seconds_count'),
  };
}
