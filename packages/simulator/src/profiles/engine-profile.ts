import type { EngineOptions } from '../engine/engine-config.ts';
import type { FrontEndOptions } from '../engine/front-end.ts';
import type { KvGroup } from '../engine/grouped-block-pool.ts';

/** Precisions of the weights that a profile can have coefficients for. `FP16` stands for BF16 too. */
export const WEIGHT_PRECISIONS = ['FP16', 'FP8', 'INT8', 'INT4', 'MXFP4', 'NVFP4'] as const;
export type WeightPrecision = (typeof WEIGHT_PRECISIONS)[number];

/**
 * The time of one engine iteration, a law that is linear in the context so that many iterations have a closed form:
 *
 * `t = base + softmax(weightRead, perToken * T) + perDecodeSequence * D + perContextToken * C + perPrefillAttention * A`
 *
 * T: tokens put through the weights (prefill tokens, and 1 + speculation depth for each decoding sequence).
 * D: decoding sequences. C: context tokens read by them. A: sum over prefill chunks of chunk * (start + chunk / 2).
 * softmax(a, b) = (a^4 + b^4)^(1/4): reading the weights hides compute until compute is the larger.
 *
 * With `experts`, weightRead grows with T; `tokenFactors` change the whole softmax with T. With `manySequences`,
 * `sequenceFactors` and `perContextTokenBesidePrefillNs`, the coefficient of C depends on what else runs.
 */
export interface IterationLaw {
  /** Launch and CPU scheduling, us. */
  readonly baseUs: number;
  /**
   * Whether launches leave the GPU waiting, as with small models on several GPUs: `base` then hides the compute of
   * tokens and the work of sequences as reading the weights does,
   * `t = softmax(base + weightRead, perToken * T + perDecodeSequence * D) + perContextToken * C + perPrefillAttention * A`.
   * `'prefill'`: only in iterations that prefill, kernel by kernel without CUDA graphs. The GPU works while the CPU launches,
   * `t = base + softmax(prefillLaunch, softmax(weightRead, perToken * T) + perPrefillAttention * A) + ...`. Default false.
   */
  readonly launchBound?: boolean | 'prefill';
  /** Streaming the weights through the memory system once, us. With `experts`: those that every token needs. */
  readonly weightReadUs: number;
  /** The experts of a mixture, of which an iteration reads only those that one of its tokens is routed to. */
  readonly experts?: ExpertWeights;
  /** Compute of one token, us. */
  readonly perTokenUs: number;
  /**
   * Time of measured kernels over softmax(weightRead, perToken * T): tiles of matrix multiplications, experts that
   * more tokens need, all-reduces. Linear between the points, constant outside of them. Default: 1 for every T.
   */
  readonly tokenFactors?: readonly FactorPoint[];
  /** Sampling, output processing and attention launch of one decoding sequence, us. */
  readonly perDecodeSequenceUs: number;
  /** Reading the KV of one context token of one decoding sequence, ns. */
  readonly perContextTokenNs: number;
  /**
   * Attention of many sequences, where it differs from that of few: few leave part of the GPU idle, and some engines
   * take another kernel for many. Above `above` sequences C costs `perContextTokenNs` of here, though never less than
   * `above` sequences of the same length would take.
   */
  readonly manySequences?: { readonly above: number; readonly perContextTokenNs: number };
  /**
   * Time of measured attention kernels for a context token over `perContextTokenNs`, by the number of decoding
   * sequences. Linear between the points, constant outside of them. Default: 1 for every number. Not with `manySequences`.
   */
  readonly sequenceFactors?: readonly FactorPoint[];
  /**
   * Reading the KV of one context token of one decoding sequence in an iteration that also prefills, ns: kernels for
   * chunks of prompts read it less well. Default: as in an iteration without prefill.
   */
  readonly perContextTokenBesidePrefillNs?: number;
  /**
   * Added to an iteration that prefills, us: only iterations of nothing but decodes replay one CUDA graph for the whole
   * model; those with a chunk of a prompt launch the attention of each layer by itself. Default 0.
   */
  readonly prefillLaunchUs?: number;
  /** Attention of prefill, ns for each (query token x key token) pair. */
  readonly perPrefillAttentionNs: number;
}

/** A count (of tokens or sequences) from 1, and the factor there. A law has them by ascending counts. */
export type FactorPoint = readonly [count: number, factor: number];

/**
 * The routed experts of a mixture. T tokens need the share 1 - (1 - perToken / count)^T of them: what independent,
 * even routing gives.
 */
export interface ExpertWeights {
  /** Experts of a layer. */
  readonly count: number;
  /** Experts that one token is routed to. */
  readonly perToken: number;
  /** Streaming all experts through the memory system once, us. */
  readonly readUs: number;
}

/** Precisions of the KV cache. `FP16` stands for BF16 too. */
export const KV_PRECISIONS = ['FP16', 'FP8'] as const;
export type KvPrecision = (typeof KV_PRECISIONS)[number];

/**
 * `measured`: fitted to measurements of an engine. `tables`: composed from measured times of kernels. `estimated`: from data
 * sheets, or derived from another precision, see `source`.
 */
export const PROFILE_STATUSES = ['measured', 'tables', 'estimated'] as const;
type ProfileStatus = (typeof PROFILE_STATUSES)[number];

/** One precision of the weights. */
export interface WeightVariant {
  /** Weights on each GPU, GiB. */
  readonly weightGiB: number;
  readonly law: IterationLaw;
  readonly status: ProfileStatus;
  readonly source: string;
  /** Mean benchmark-accuracy retained relative to FP16, 0..1. */
  readonly quality: number;
}

/** Errors of the law on the measurements that it was fitted to, percent of the measured latency. */
interface ProfileFit {
  readonly rows: number;
  readonly meanErrorPercent: number;
  readonly worstErrorPercent: number;
  /** Cross-validated: every row predicted by a fit that left it out. */
  readonly heldOutMeanErrorPercent: number;
  readonly heldOutWorstErrorPercent: number;
  /** The command that makes this profile from the measurements. */
  readonly command: string;
}

/** Settings of the scheduler that an engine was started with. vLLM has `asyncScheduling` on by default since 0.14. */
type SchedulerSettings = Pick<
  EngineOptions,
  | 'asyncScheduling'
  | 'chunkedPrefill'
  | 'drafter'
  | 'prefillFirst'
  | 'schedulerRecvInterval'
  | 'longPrefillTokenThreshold'
  | 'longPrefillTokenThresholdAdaptive'
  | 'speculationDepthPerBatchSize'
  | 'maxLoras'
  | 'watermark'
  | 'wholePromptFits'
> & {
  /** Rank that each of `maxLoras` adapters has room for; `memory.overheadGiB` contains that. */
  readonly maxLoraRank?: number;
};

/** Draft model and measured acceptance. */
export interface SpeculationProfile {
  readonly method: string;
  /** Weights of the draft on each GPU, GiB. */
  readonly draftGiB: number;
  /** One draft pass: fixed part, us. */
  readonly draftBaseUs: number;
  /** One draft pass: for each (sequence x drafted token), us. */
  readonly draftPerTokenUs: number;
  /** One draft pass: for each context token, ns. */
  readonly draftPerContextTokenNs: number;
  /** Tokens of a tree of drafts that a step verifies for each sequence. Default those of a chain, 1 + depth. */
  readonly verifyTokens?: number;
  /** P(at least k draft tokens accepted), k = 1..8, by kind of text. */
  readonly survival: Record<string, readonly number[]>;
  readonly source: string;
}

/** Division of a model over the GPUs of an engine beside tensor parallelism, which divides what these leave. */
interface ParallelDivision {
  /** Replicas of the attention that share the experts. Default 1. */
  readonly data?: number;
  /** GPUs that whole experts are divided over. Default 1: each expert is divided as other weights are. */
  readonly expert?: number;
  /** Stages that the layers are divided over. Default 1. */
  readonly pipeline?: number;
}

/** Sleep and wake, as vLLM's sleep mode has them: old weights leave the GPU and new ones enter over the host link. */
interface HostCheckpoints {
  /** Bandwidth between host and each GPU, GB/s. */
  readonly linkGBps: number;
  /** Fixed part of a change, s. */
  readonly wakeSeconds: number;
}

/**
 * One model served by one engine on one kind of GPU (or tensor-parallel group). Read from a JSON file, see
 * `parseEngineProfile`.
 */
export interface EngineProfile {
  /** `<gpu>-<memory>-<model>[-tpN][-epN][-dpN][-ppN]`, for instance `a100-40gb-llama-3-8b`. */
  readonly name: string;
  readonly gpu: {
    readonly name: string;
    readonly memoryGiB: number;
    readonly count: number;
    readonly usdPerHour: number;
  };
  /** Absent: all GPUs are one tensor-parallel group. */
  readonly parallel?: ParallelDivision;
  readonly model: {
    readonly name: string;
    readonly kvBytesPerToken: number;
    /** Precision of the KV cache that `kvBytesPerToken` and the laws are for. Default `FP16`. */
    readonly kvCache?: KvPrecision;
    /**
     * Groups of equally many layers that vLLM keeps KV blocks for, where some attend within a window or a chunk, and KV of one
     * token in the layers of one group, bytes. Absent: all layers attend to all tokens.
     */
    readonly kvGroups?: { readonly bytesPerToken: number; readonly attention: readonly KvGroup[] };
  };
  readonly engine: SchedulerSettings & { readonly name: string; readonly version: string };
  readonly status: ProfileStatus;
  readonly source: string;
  readonly fit: ProfileFit | null;
  /** Range of the measurements; outside of it the law extrapolates. */
  readonly validity: {
    readonly batch: readonly [number, number];
    readonly contextTokens: readonly [number, number];
  };
  readonly memory: {
    /** Share of the GPU the engine may take (vLLM gpu_memory_utilization). */
    readonly utilization: number;
    /** Activations, CUDA graphs and fragmentation, GiB a GPU. */
    readonly overheadGiB: number;
    /** Tokens in a KV block. */
    readonly blockTokens: number;
  };
  /** Time between a request's arrival and its first visit to the scheduler (HTTP, tokenization, IPC), ms. */
  readonly requestOverheadMs: number;
  /** Share of it that varies from request to request, exponentially distributed. Default 0. */
  readonly requestOverheadJitter?: number;
  /** Added to it for each prompt token (reading the request, chat template, tokenization), us. Default 0. */
  readonly requestOverheadPerTokenUs?: number;
  /** Queue of the front end, in which requests wait beyond that delay, and tokens to be streamed. Default none. */
  readonly frontEnd?: FrontEndOptions;
  /** Cold start of the engine, after a crash too: all KV lost, nothing served, s. */
  readonly reloadSeconds: number;
  /**
   * Weights of every precision wait in host memory, so that a change of precision puts one engine to sleep and wakes
   * another. Where absent, it is a cold start.
   */
  readonly hostCheckpoints?: HostCheckpoints;
  readonly weights: Partial<Record<WeightPrecision, WeightVariant>>;
  readonly speculation: SpeculationProfile | null;
  /** KV copied to the memory of the host and loaded from there, see `EngineOptions.hostKv`. Default none. */
  readonly hostKv?: {
    /** Memory of the host for all GPUs together (vLLM kv_offloading_size), GiB. */
    readonly sizeGiB: number;
    /** From the host to one GPU, GB/s. */
    readonly gigabytesPerSecond: number;
  };
  /** KV transfer between the two GPUs of a prefill/decode split. */
  readonly transfer: { readonly gigabytesPerSecond: number; readonly setupMs: number };
}
