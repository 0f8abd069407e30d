import { Engine } from '../src/engine/engine.ts';
import type { BatchDepth, Drafter, EngineConfig, QueueOrder } from '../src/engine/engine-config.ts';
import type { PromptPrefix } from '../src/engine/prefix-cache.ts';
import { TICKS_PER_MS } from '../src/engine/ticks.ts';
import type { SchedulingPolicy } from '../src/engine/waiting-queue.ts';
import { RequestView } from '../src/policy/views.ts';
import { ReferenceEngine } from './reference-engine.ts';

/** Arrival in ms, prompt tokens, output tokens, priority, abort in ms or -1, request whose text it begins with or -1, tokens of that. */
type RecordedRequest = readonly [number, number, number, number, number, number, number];

/** A load and its schedule in vLLM, as `benchmarks/vllm/record_schedules.py` writes them. */
export interface RecordedLoad extends RecordedSchedule {
  readonly block_tokens: number;
  readonly policy: SchedulingPolicy;
  readonly prefix_caching: boolean;
  readonly max_num_seqs: number;
  readonly max_num_batched_tokens: number;
  readonly kv_blocks: number;
  /** Settings of the scheduler that differ from vLLM's defaults. */
  readonly options?: {
    readonly watermark?: number;
    readonly scheduler_reserve_full_isl?: boolean;
    readonly max_num_active_seqs?: number;
    readonly async_scheduling?: boolean;
    readonly enable_chunked_prefill?: boolean;
    readonly long_prefill_token_threshold?: number;
    readonly long_prefill_token_threshold_adaptive?: boolean;
  };
  /** Adapters in an iteration, and that of each request; 0 is the base model. */
  readonly max_loras?: number;
  readonly adapters?: readonly number[];
  /** Draft tokens of each decode step, by whom, and by batch size where that decides. */
  readonly drafts?: number;
  readonly drafter?: Drafter;
  readonly drafts_per_batch_size?: readonly BatchDepth[];
  /** P(at least k draft tokens accepted); the draws are the engine's own, under seed 0. */
  readonly survival?: readonly number[];
  /** Groups of layers that share the pool: 1 with full attention, 0 with a sliding window of so many tokens. */
  readonly groups?: readonly (0 | 1)[];
  readonly window?: number;
  /** Whether the window slides, or is a chunk. Default slides. */
  readonly local?: 'window' | 'chunk';
  readonly requests: readonly RecordedRequest[];
}

export interface RecordedSchedule {
  /** First and last token of each request, ms; 0 without one, and for the last token of an aborted request. */
  readonly tokens_ms: readonly (readonly [number, number])[];
  /** Iterations, preemptions, cached tokens. */
  readonly totals: readonly number[];
}

export const LAW_OF_1_MS = {
  baseUs: 1000,
  weightReadUs: 0,
  perTokenUs: 0,
  perDecodeSequenceUs: 0,
  perContextTokenNs: 0,
  perPrefillAttentionNs: 0,
};

const MOST_ADAPTERS_OF_A_LOAD = 8;

const INSTANT_DRAFTS = {
  ...{ method: 'ngram', draftGiB: 0, draftBaseUs: 0, draftPerTokenUs: 0, draftPerContextTokenNs: 0 },
  ...{ survival: {}, source: 'test' },
};

/**
 * Serves a recorded load on the engine, one iteration a millisecond.
 * @param named Content that has a name: all, or what another request asks for. The schedule is the same.
 * @param order Orders its queue.
 */
export function scheduleOnEngine(
  load: RecordedLoad,
  named: 'all' | 'asked for' = 'all',
  order?: QueueOrder,
): RecordedSchedule {
  const engine = new Engine(configOf(load), { ...optionsOf(load), order });
  serve(engine, load, Number.POSITIVE_INFINITY, named);
  const { iterations, preemptions, cachedTokens } = engine.counters;
  const tokens = load.requests.map((): [number, number] => [0, 0]);
  addTokens(tokens, engine);
  return { tokens_ms: tokens, totals: [iterations, preemptions, cachedTokens] };
}

/** The same, served halfway and then by another engine that a snapshot was restored in. For loads without aborts. */
export function scheduleAcrossSnapshot(load: RecordedLoad): RecordedSchedule['tokens_ms'] {
  const engine = new Engine(configOf(load), optionsOf(load));
  const last = Math.max(...load.tokens_ms.map(([, lastToken]) => lastToken));
  serve(engine, load, (last / 2) * TICKS_PER_MS);
  const tokens = load.requests.map((): [number, number] => [0, 0]);
  addTokens(tokens, engine);
  const other = new Engine(configOf(load), optionsOf(load));
  other.restore(engine.snapshot());
  other.runUntil(Number.POSITIVE_INFINITY);
  addTokens(tokens, other);
  return tokens;
}

function addTokens(tokens: [number, number][], { completions, firstTokens }: Engine): void {
  for (let i = 0; i < firstTokens.count; i++) {
    tokens[firstTokens.ids[i]][0] = firstTokens.firstTokens[i] / TICKS_PER_MS;
  }
  for (let i = 0; i < completions.count; i++) {
    tokens[completions.ids[i]][1] = completions.lastTokens[i] / TICKS_PER_MS;
  }
}

/** The same on the reference engine. */
export function scheduleOnReference(load: RecordedLoad): RecordedSchedule {
  const engine = new ReferenceEngine(configOf(load), optionsOf(load));
  serve(engine, load);
  const { iterations, preemptions, cachedTokens } = engine;
  const tokens = load.requests.map((): [number, number] => [0, 0]);
  for (const { id, firstToken } of engine.firstTokens) tokens[id][0] = firstToken / TICKS_PER_MS;
  for (const { id, lastToken } of engine.completions) tokens[id][1] = lastToken / TICKS_PER_MS;
  return { tokens_ms: tokens, totals: [iterations, preemptions, cachedTokens] };
}

function serve(
  engine: Pick<Engine | ReferenceEngine, 'submit' | 'abort' | 'runUntil'>,
  load: RecordedLoad,
  until = Number.POSITIVE_INFINITY,
  named: 'all' | 'asked for' = 'all',
): void {
  const askedTokens = load.requests.map(([, , , , , , common]) => common);
  for (const [, , , , , parent, common] of load.requests) {
    if (parent >= 0) askedTokens[parent] = Math.max(askedTokens[parent], common);
  }
  const blockIds: number[][] = [];
  const aborts: [number, number][] = [];
  let fresh = 0;
  for (const [id, [arrivalMs, input, output, priority, abortMs, parent, common]] of load.requests.entries()) {
    const blocks = Math.floor((input + output) / load.block_tokens);
    const shared = Math.floor(common / load.block_tokens);
    const ids = Array.from({ length: blocks }, (_, block) =>
      block < shared ? blockIds[parent][block] : fresh++,
    );
    blockIds.push(ids);
    const namedTokens = named === 'all' ? input + output : Math.min(input + output, askedTokens[id]);
    const adapter = load.adapters?.[id] ?? 0;
    // Equal text under another adapter has another content.
    const chunks = ids
      .slice(0, Math.floor(namedTokens / load.block_tokens))
      .map((block) => block * (MOST_ADAPTERS_OF_A_LOAD + 1) + adapter);
    const prefix: PromptPrefix | null =
      chunks.length === 0 ? null : { ids: chunks, chunkTokens: load.block_tokens, namedTokens };
    const view = new RequestView({ input, priority, prefix }, arrivalMs / 1000);
    engine.submit({ id, arrival: arrivalMs * TICKS_PER_MS, input, output, priority, adapter, prefix, view });
    if (abortMs >= 0) aborts.push([abortMs, id]);
  }
  for (const [abortMs, id] of aborts.sort((a, b) => a[0] - b[0])) {
    engine.runUntil(abortMs * TICKS_PER_MS);
    engine.abort(id);
  }
  engine.runUntil(until);
}

function configOf(load: RecordedLoad): EngineConfig {
  return {
    law: LAW_OF_1_MS,
    maxNumSeqs: load.options?.max_num_active_seqs ?? load.max_num_seqs,
    kvBlocks: load.kv_blocks,
    schedulingPolicy: load.policy,
    speculationDepth: load.drafts ?? 0,
    speculation: load.drafts === undefined ? null : INSTANT_DRAFTS,
    survival: load.survival ?? [],
  };
}

function optionsOf(load: RecordedLoad) {
  return {
    blockTokens: load.block_tokens,
    maxNumBatchedTokens: load.max_num_batched_tokens,
    prefixCaching: load.prefix_caching,
    seed: 0,
    role: 'mixed' as const,
    requestOverheadMs: 0,
    requestOverheadJitter: 0,
    watermark: load.options?.watermark ?? 0,
    wholePromptFits: load.options?.scheduler_reserve_full_isl ?? true,
    chunkedPrefill: load.options?.enable_chunked_prefill ?? true,
    asyncScheduling: load.options?.async_scheduling ?? false,
    longPrefillTokenThreshold: load.options?.long_prefill_token_threshold ?? 0,
    longPrefillTokenThresholdAdaptive: load.options?.long_prefill_token_threshold_adaptive ?? false,
    maxLoras: load.max_loras ?? 0,
    drafter: load.drafter ?? 'ngram',
    speculationDepthPerBatchSize: load.drafts_per_batch_size ?? [],
    kvGroups: (load.groups ?? [1]).map((isFull) => (isFull ? {} : { [load.local ?? 'window']: load.window })),
  };
}
