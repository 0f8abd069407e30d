import type { RequestView } from '../policy/views.ts';
import type { IterationLaw, SpeculationProfile } from '../profiles/engine-profile.ts';
import { type SimulatorErrorCode, wrongSetting } from '../simulator-error.ts';
import { type FrontEndOptions, MOST_API_SERVERS } from './front-end.ts';
import { isFullAttention, type KvGroup } from './grouped-block-pool.ts';
import type { SchedulingPolicy } from './waiting-queue.ts';

/** Largest prompt or output of a request, tokens. */
export const MAX_REQUEST_TOKENS = 10_000_000;

/** Largest token budget of an iteration. */
export const MAX_BATCHED_TOKENS = 1_000_000;

/** Largest share of the KV blocks that admissions leave free. */
export const MOST_WATERMARK = 0.99;

/** Most draft tokens a decode step. */
export const MAX_SPECULATION_DEPTH = 32;

/**
 * Source of the drafts: `ngram` without a KV cache; `eagle`, which stands for vLLM's `eagle`, `eagle3` and `mtp`, writes the KV of its
 * drafts into the blocks of the request.
 */
export const DRAFTERS = ['ngram', 'eagle'] as const;
export type Drafter = (typeof DRAFTERS)[number];

/** Draft tokens of batches from `first` to `last` sequences. */
export type BatchDepth = readonly [first: number, last: number, depth: number];

/** A tier of KV in the memory of the host. */
export interface HostKv {
  /** Blocks that it holds. */
  readonly blocks: number;
  /** Time of loading the KV of one token, ns. */
  readonly loadNsPerToken: number;
}

/** Answers all requests of a queue, the first to be admitted first. */
export type QueueOrder = (queue: readonly RequestView[], tick: number) => readonly RequestView[];

/** Options that are fixed while an engine runs. */
export interface EngineOptions {
  /** Tokens in a KV block, a power of two up to 256. Default 16, as in vLLM. */
  readonly blockTokens?: number;
  /** Token budget of an iteration (vLLM max_num_batched_tokens). Default 2048. */
  readonly maxNumBatchedTokens?: number;
  /** Seed of the acceptance and overhead draws. Default 0. */
  readonly seed?: number;
  /** Delay between arrival and the scheduler (HTTP, tokenization), ms. Default 0. */
  readonly requestOverheadMs?: number;
  /**
   * Share of `requestOverheadMs` that differs from request to request: exponentially distributed, about the same mean.
   * A request may overtake another. Default 0.
   */
  readonly requestOverheadJitter?: number;
  /** Added to the delay for each prompt token (tokenization), us. Default 0. */
  readonly requestOverheadPerTokenUs?: number;
  /**
   * Front end with a queue. The delay above is then that of a request which does not wait in it, at least its work
   * there; the times of first and last tokens in the logs are those at which clients have them. Default: no queue.
   */
  readonly frontEnd?: FrontEndOptions;
  /**
   * `mixed` serves whole requests. `prefill` emits the first token and hands the request over (`takeHandovers`).
   * Default `mixed`. An engine that decodes for another is `mixed` and gets its work by `submitTransferred`.
   */
  readonly role?: EngineRole;
  /** Whether prompts find what is cached of their prefix (vLLM enable_prefix_caching). Default false. */
  readonly prefixCaching?: boolean;
  /**
   * Copies of KV blocks in the memory of the host (vLLM kv_offloading_size), with `prefixCaching`. All blocks of a prompt are
   * copied when they are computed, in time that costs nothing; blocks that the pool has lost are loaded when a request
   * asks for them, by which the iteration that admits it is longer. Default none.
   */
  readonly hostKv?: HostKv;
  /**
   * Share of the KV blocks, and vLLM's one reserved block, that an admission leaves free while others run (vLLM
   * watermark). Default 0.
   */
  readonly watermark?: number;
  /**
   * Whether a request is admitted only when its whole prompt fits (vLLM scheduler_reserve_full_isl). Default true; false
   * asks for the blocks of the first chunk.
   */
  readonly wholePromptFits?: boolean;
  /**
   * Whether a prompt may be computed in parts (vLLM enable_chunked_prefill). Default true; without, a request waits until an
   * iteration has the token budget for all of its prompt, and one of more tokens than the budget is refused.
   */
  readonly chunkedPrefill?: boolean;
  /**
   * Whether an iteration either prefills or decodes, and prefills come first (SGLang without enable_mixed_chunk). Default
   * false: decodes and prefills share an iteration, as in vLLM. Not without `wholePromptFits`.
   */
  readonly prefillFirst?: boolean;
  /**
   * Iterations of decodes alone between two looks at what has arrived (SGLang scheduler_recv_interval): after a prefill, and
   * while nothing runs, it looks at once. Default 1.
   */
  readonly schedulerRecvInterval?: number;
  /**
   * Whether an iteration is scheduled while the one before it runs (vLLM async_scheduling): a request is then seen by
   * the first iteration that starts after the start of another, and one that ends holds its place and blocks until the
   * iteration after its last has been scheduled. Default false.
   */
  readonly asyncScheduling?: boolean;
  /**
   * Most tokens of a prompt that an iteration computes while there are other requests (vLLM long_prefill_token_threshold).
   * Several prefills may then be incomplete. Default 0, which is no limit.
   */
  readonly longPrefillTokenThreshold?: number;
  /** Whether that is at least an equal share of the token budget (vLLM long_prefill_token_threshold_adaptive). Default false. */
  readonly longPrefillTokenThresholdAdaptive?: boolean;
  /**
   * Method of the drafts (vLLM speculative_config.method). With `eagle` a request also holds slots for the next drafts, the
   * last block found of a prompt is computed again, and sequences are scheduled ahead as if all drafts were accepted.
   * Default `ngram`.
   */
  readonly drafter?: Drafter;
  /**
   * Draft tokens by the number of requests in the iteration that drafts them, at most `speculationDepth` (vLLM
   * num_speculative_tokens_per_batch_size). Ranges ascend from 1; behind a range its depth goes on. Default
   * `speculationDepth` for all.
   */
  readonly speculationDepthPerBatchSize?: readonly BatchDepth[];
  /**
   * Groups of layers with a block table of their own (vLLM's hybrid KV cache groups). They share the pool: a token takes a
   * slot in each. Not with `hostKv`. Default one group with full attention.
   */
  readonly kvGroups?: readonly KvGroup[];
  /**
   * Most LoRA adapters in an iteration (vLLM max_loras). A waiting request whose adapter would be one more is passed over, and
   * keeps its place in the queue. Default 0, which is no limit.
   */
  readonly maxLoras?: number;
  /**
   * Order of admission of the waiting requests, asked for before each iteration that has room while several wait. The queue
   * comes in its present order: preempted requests first, new ones last. Default that of `schedulingPolicy`.
   */
  readonly order?: QueueOrder;
  /** Told of every stretch of iterations. Costs time: for looking, not for running many. */
  readonly onIterations?: (span: IterationSpan) => void;
}

/** The options with their defaults. */
export type EngineSettings = Required<Omit<EngineOptions, 'frontEnd' | 'order' | 'onIterations'>> &
  Pick<EngineOptions, 'frontEnd' | 'order' | 'onIterations'>;

const DEFAULTS: EngineSettings = {
  blockTokens: 16,
  maxNumBatchedTokens: 2048,
  seed: 0,
  requestOverheadMs: 0,
  requestOverheadJitter: 0,
  requestOverheadPerTokenUs: 0,
  role: 'mixed',
  prefixCaching: false,
  hostKv: { blocks: 0, loadNsPerToken: 0 },
  watermark: 0,
  wholePromptFits: true,
  chunkedPrefill: true,
  asyncScheduling: false,
  prefillFirst: false,
  schedulerRecvInterval: 1,
  longPrefillTokenThreshold: 0,
  longPrefillTokenThresholdAdaptive: false,
  drafter: 'ngram',
  speculationDepthPerBatchSize: [],
  kvGroups: [{}],
  maxLoras: 0,
};

/** One iteration, or several of decodes alone. Ticks. */
export interface IterationSpan {
  readonly start: number;
  readonly end: number;
  readonly iterations: number;
  /** Prompt tokens computed. */
  readonly prefillTokens: number;
  /** Requests that ran when it began: all but those it admitted. */
  readonly runningBefore: number;
  /** Requests that wait, run, and KV blocks in use, at the end. */
  readonly waiting: number;
  readonly running: number;
  readonly kvBlocksUsed: number;
}

/** Whether an engine serves whole requests, or only prefills and sends the KV to another. */
export type EngineRole = 'mixed' | 'prefill';

/** Settings that `Engine.configure` can change while requests are in flight. It takes effect at the next iteration. */
export interface EngineConfig {
  readonly law: IterationLaw;
  /** Most sequences that run at once (vLLM max_num_seqs). Lowering it preempts nobody: the surplus drains. */
  readonly maxNumSeqs: number;
  /** Token budget of an iteration from now on. Default that of the options. */
  readonly maxNumBatchedTokens?: number;
  /** KV blocks of the pool. Shrinking it below what is in use preempts. */
  readonly kvBlocks: number;
  readonly schedulingPolicy: SchedulingPolicy;
  /** Draft tokens a decode step; 0 is off. Needs `speculation`. */
  readonly speculationDepth: number;
  readonly speculation: SpeculationProfile | null;
  /** P(at least k draft tokens accepted), k = 1, 2, ... At least `speculationDepth` long. */
  readonly survival: readonly number[];
}

export function expectNumber(code: SimulatorErrorCode, ...[field, value, low, high]: Range): void {
  if (typeof value !== 'number' || !(value >= low && value <= high)) {
    throw wrongSetting(code, field, `a number from ${low} to ${high}`, value);
  }
}

export function expectInteger(
  code: SimulatorErrorCode,
  field: string,
  value: number,
  low: number,
  high: number,
): void {
  if (!Number.isInteger(value) || value < low || value > high) {
    throw wrongSetting(code, field, `a whole number from ${low} to ${high}`, value);
  }
}

/** The ranges that vLLM takes for draft tokens by batch size. */
export const BATCH_DEPTHS = `ascending ranges [first, last, depth] from 1 on, depths up to ${MAX_SPECULATION_DEPTH}`;

export function isBatchDepths(value: unknown): value is BatchDepth[] {
  if (!Array.isArray(value)) return false;
  return value.every((range: unknown, i) => {
    if (!Array.isArray(range) || range.length !== 3 || !range.every(Number.isSafeInteger)) return false;
    const [first, last, depth] = range as number[];
    const follows = i === 0 ? first === 1 : first > (value[i - 1] as BatchDepth)[1];
    return follows && last >= first && depth >= 0 && depth <= MAX_SPECULATION_DEPTH;
  });
}

/** Tokens that a KV block may hold. */
const BLOCK_SIZES: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const HOUR_MS = 3600e3;

type Range = readonly [field: string, value: number, low: number, high: number];

/** The settings of an engine. @throws SimulatorError naming the option that is out of range. */
export function engineSettings(options: EngineOptions): EngineSettings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings: EngineSettings = { ...DEFAULTS, ...given };
  const { blockTokens, drafter, speculationDepthPerBatchSize, hostKv, kvGroups, frontEnd } = settings;
  const refuse = (field: string, expected: string, got: unknown) => {
    throw wrongSetting('ENGINE_OPTION', field, expected, got);
  };
  if (!BLOCK_SIZES.includes(blockTokens)) {
    refuse('blockTokens', `one of ${BLOCK_SIZES.join(', ')}`, blockTokens);
  }
  const whole: readonly Range[] = [
    ['maxNumBatchedTokens', settings.maxNumBatchedTokens, 1, MAX_BATCHED_TOKENS],
    ['longPrefillTokenThreshold', settings.longPrefillTokenThreshold, 0, MAX_REQUEST_TOKENS],
    ['hostKv.blocks', hostKv.blocks, 0, 2 ** 30],
    ['maxLoras', settings.maxLoras, 0, 2 ** 30],
    ['schedulerRecvInterval', settings.schedulerRecvInterval, 1, MAX_REQUEST_TOKENS],
    ...kvGroups.map(({ window = 1 }, at): Range => [`kvGroups[${at}].window`, window, 1, MAX_REQUEST_TOKENS]),
    ...(frontEnd ? [['frontEnd.processes', frontEnd.processes, 1, MOST_API_SERVERS] as const] : []),
  ];
  for (const range of whole) expectInteger('ENGINE_OPTION', ...range);
  const numbers: readonly Range[] = [
    ['requestOverheadMs', settings.requestOverheadMs, 0, HOUR_MS],
    ['requestOverheadJitter', settings.requestOverheadJitter, 0, 1],
    ['requestOverheadPerTokenUs', settings.requestOverheadPerTokenUs, 0, 1e6],
    ['seed', settings.seed, 0, Number.MAX_SAFE_INTEGER],
    ['watermark', settings.watermark, 0, MOST_WATERMARK],
    ['hostKv.loadNsPerToken', hostKv.loadNsPerToken, 0, 1e9],
    ['frontEnd.perRequestMs', frontEnd?.perRequestMs ?? 0, 0, HOUR_MS],
    ['frontEnd.perPromptTokenUs', frontEnd?.perPromptTokenUs ?? 0, 0, 1e6],
    ['frontEnd.perOutputTokenUs', frontEnd?.perOutputTokenUs ?? 0, 0, 1e6],
  ];
  for (const range of numbers) expectNumber('ENGINE_OPTION', ...range);
  if (!DRAFTERS.includes(drafter)) refuse('drafter', `one of ${DRAFTERS.join(', ')}`, drafter);
  if (!isBatchDepths(speculationDepthPerBatchSize)) {
    refuse('speculationDepthPerBatchSize', BATCH_DEPTHS, JSON.stringify(speculationDepthPerBatchSize));
  }
  if (kvGroups.length === 0) refuse('kvGroups', 'at least one group', 0);
  for (const [at, { chunk = blockTokens }] of kvGroups.entries()) {
    if (!(chunk > 0 && chunk % blockTokens === 0)) refuse(`kvGroups[${at}].chunk`, 'whole blocks', chunk);
  }
  if (hostKv.blocks > 0 && !kvGroups.every(isFullAttention)) {
    refuse('hostKv.blocks', '0 with a sliding window or chunks', hostKv.blocks);
  }
  return settings;
}

/** @throws SimulatorError naming the field of a configuration that is out of range. */
export function checkEngineConfig(config: EngineConfig, defaultBudget: number): void {
  const { maxNumBatchedTokens = defaultBudget } = config;
  expectInteger('ENGINE_CONFIG', 'maxNumBatchedTokens', maxNumBatchedTokens, 1, MAX_BATCHED_TOKENS);
  expectInteger('ENGINE_CONFIG', 'maxNumSeqs', config.maxNumSeqs, 1, maxNumBatchedTokens);
  expectInteger('ENGINE_CONFIG', 'kvBlocks', config.kvBlocks, 1, 2 ** 30);
  expectInteger('ENGINE_CONFIG', 'speculationDepth', config.speculationDepth, 0, MAX_SPECULATION_DEPTH);
  if (config.speculationDepth === 0) return;
  const { speculationDepth: depth } = config;
  if (config.speculation === null)
    throw wrongSetting('ENGINE_CONFIG', 'speculationDepth', '0 without a speculation profile', depth);
  if (config.survival.length < depth) {
    const expected = `at least ${depth} probabilities, one for each position`;
    throw wrongSetting('ENGINE_CONFIG', 'survival', expected, config.survival.length);
  }
}
