import { vllmMinor } from '../data/engine-constants.ts';

/** Time that an engine adds to the kernels of an iteration, and to a request. */
export interface EngineOverheads {
  /** Whether it schedules an iteration while the one before it runs. */
  readonly asyncScheduling: boolean;
  /** Time of reading the KV cache against the attention kernels of the tables. */
  readonly contextFactor: number;
  /** CPU scheduling between two iterations, us. */
  readonly iterationUs: number;
  /** Gaps between the kernels of a layer, us. */
  readonly perLayerUs: number;
  /** Added to it with tensor parallelism, us. */
  readonly parallelPerLayerUs: number;
  /**
   * Added to it in a layer of experts in 8 bits, us, all of which kernels that pad each expert read; `null`: those that
   * tokens are routed to are read.
   */
  readonly paddedExpertsUs: number | null;
  /** Whether it computes the shared expert of DeepSeek-V3 as one more routed expert, on GPUs whose kernels can. */
  readonly fusesSharedExpert: boolean;
  /** Small kernels that a norm of queries and keys over the heads of several GPUs takes, beside two all-reduces. */
  readonly acrossNormKernels: number;
  /** Added to it in an iteration that prefills: its attention is launched by itself, us. */
  readonly prefillPerLayerUs: number;
  /** CPU work of one sequence, us. */
  readonly perSequenceUs: number;
  /** CPU work of one context token, ns, which tensor parallelism does not divide. */
  readonly perContextTokenNs: number;
  /** Time before a request is scheduled, ms. */
  readonly requestOverheadMs: number;
  /** Share of it that varies from request to request, exponentially distributed. */
  readonly requestOverheadJitter: number;
  /** Added to it for each prompt token, us. */
  readonly requestOverheadPerTokenUs: number;
}

/**
 * vLLM V1, which schedules an iteration while the one before it runs. A choice between the overheads that served loads of
 * vLLM 0.15 on H100 and closed loops of vLLM 0.18 show over the kernel tables.
 */
export const VLLM_OVERHEADS: EngineOverheads = {
  asyncScheduling: true,
  contextFactor: 1,
  iterationUs: 150,
  perLayerUs: 1,
  parallelPerLayerUs: 2,
  paddedExpertsUs: null,
  fusesSharedExpert: false,
  acrossNormKernels: 0,
  prefillPerLayerUs: 38,
  perSequenceUs: 5,
  perContextTokenNs: 0,
  requestOverheadMs: 6,
  requestOverheadJitter: 0.6,
  requestOverheadPerTokenUs: 7,
};

/** vLLM before 0.18, which fused the norm of MiniMax-M2 with its all-reduces. The number of kernels is a choice. */
const VLLM_BEFORE_0_18: EngineOverheads = { ...VLLM_OVERHEADS, acrossNormKernels: 10 };

/**
 * vLLM V1 before 0.14, where asynchronous scheduling became the default. CPU work of a sequence is fitted to every second
 * row of Llama-3.1-8B on 0.12 in the public operating points, and the layer of experts to those of Qwen3-235B.
 */
const VLLM_BEFORE_0_14: EngineOverheads = {
  ...VLLM_BEFORE_0_18,
  asyncScheduling: false,
  perSequenceUs: 20,
  paddedExpertsUs: 120,
};

/**
 * vLLM before 0.6, fitted to the static batches of Llama-3-8B on one and two H100 (LLM-Inference-Bench): CPU work between
 * iterations, for each sequence and for the context that it holds, and an all-reduce outside of the graph. Context takes 56,
 * 40 and 33 ns a token on one, two and four GPUs, of which the attention kernels of the tables take 41, 21 and 10.
 */
const VLLM_BEFORE_0_6: EngineOverheads = {
  ...VLLM_OVERHEADS,
  asyncScheduling: false,
  iterationUs: 1550,
  parallelPerLayerUs: 30,
  perSequenceUs: 35,
  perContextTokenNs: 17,
  requestOverheadMs: 5,
  requestOverheadJitter: 0,
};

/**
 * vLLM before V1, which from 0.6 on handles the last tokens while the next iteration runs. The times are fitted to the static
 * batches of Llama-3-8B on one and two A100, whose scripts ask for the libraries of vLLM 0.6.
 */
const VLLM_BEFORE_0_8: EngineOverheads = { ...VLLM_BEFORE_0_6, iterationUs: 150, perSequenceUs: 60 };

/**
 * SGLang, which prefills without CUDA graphs and in iterations of their own. Its constants
 * are chosen on the open rows of the public operating points. Shared experts: `determine_num_fused_shared_experts` of its
 * models/deepseek_v2.py; `flashinfer_trtllm`, its kernels for experts on Blackwell, turn that off (server_args.py).
 */
const SGLANG_OVERHEADS: EngineOverheads = {
  ...VLLM_OVERHEADS,
  fusesSharedExpert: true,
  perLayerUs: 10,
  prefillPerLayerUs: 500,
  requestOverheadMs: 100,
  requestOverheadPerTokenUs: 0,
};

/** Newest first; a version takes the last entry that it is older than. */
const VLLM_VERSIONS: readonly (readonly [minor: number, before: EngineOverheads])[] = [
  [18, VLLM_BEFORE_0_18],
  [14, VLLM_BEFORE_0_14],
  [8, VLLM_BEFORE_0_8],
  [6, VLLM_BEFORE_0_6],
];

/** Overheads of an engine. @param version `0.<minor>` and what follows; others count as the newest. */
export function engineOverheads(engine: 'vllm' | 'sglang', version: string | null): EngineOverheads {
  const minor = vllmMinor(version ?? '');
  if (engine === 'sglang') return SGLANG_OVERHEADS;
  return VLLM_VERSIONS.findLast(([before]) => minor < before)?.[1] ?? VLLM_OVERHEADS;
}
