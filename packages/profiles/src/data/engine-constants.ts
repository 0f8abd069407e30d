import engines from './engines.json' with { type: 'json' };
import type { MeasuredGpu } from './gpu.ts';

/** Shares of the data sheet figures that an engine reaches, for all models. */
export interface EngineConstants {
  /** Engine and version the constants are from, for instance `vLLM 0.15`. */
  readonly engine: string;
  readonly version: string;
  /** Whether it schedules an iteration while the one before it runs. */
  readonly asyncScheduling: boolean;
  /** CPU scheduling and launches of an iteration, us. */
  readonly baseUs: number;
  /** Added with tensor parallelism, us. */
  readonly parallelBaseUs: number;
  /** Work of each layer that neither weights nor compute explain: small kernels, gaps, us. */
  readonly perLayerUs: number;
  /** Added to it for each doubling of the tensor parallelism: the all-reduces, us. */
  readonly parallelPerLayerUs: number;
  /** Added to it in a mixture of experts: routing, permuting tokens, us. */
  readonly mixturePerLayerUs: number;
  /** Added to it where queries and keys are normalised, us. */
  readonly qkNormPerLayerUs: number;
  /** Added to it in an iteration that prefills, us, see `IterationLaw.prefillLaunchUs`. */
  readonly prefillPerLayerUs: number;
  /** Sampling and output of one decoding sequence, us. */
  readonly perDecodeSequenceUs: number;
  readonly efficiencies: Readonly<Record<MeasuredGpu, Efficiencies>>;
  /** Efficiency of reading experts against that of reading dense weights. */
  readonly expertReadFactor: number;
  /** Share of the dense BF16 arithmetic that the attention of prefill reaches. */
  readonly prefillAttentionEfficiency: number;
  /** Share of the link between GPUs that all-reduces of prefill reach. `Infinity` leaves them out. */
  readonly allReduceEfficiency: number;
  /** Time before a request is scheduled, ms. */
  readonly requestOverheadMs: number;
  /** Share of it that varies from request to request, exponentially distributed. */
  readonly requestOverheadJitter: number;
}

/** Shares of what the data sheet of a GPU promises. */
interface Efficiencies {
  /** Memory bandwidth that reading weights reaches. */
  readonly weightRead: number;
  /** Memory bandwidth that reading KV reaches. */
  readonly kvRead: number;
  /** Dense BF16 arithmetic that matrix multiplication reaches. */
  readonly compute: number;
}

/** vLLM before V1. */
export const VLLM_V0: EngineConstants = {
  ...engines.constants.v0.values,
  allReduceEfficiency: Number.POSITIVE_INFINITY,
};

/** vLLM V1. */
export const VLLM_V1: EngineConstants = engines.constants.v1.values;

/**
 * Constants of a version of vLLM, of which V1 is the default engine since 0.8 and asynchronous scheduling since 0.14. Those of
 * V1 are fitted to 0.15.
 *
 * @param version `0.<minor>` and what follows; others count as the newest.
 */
export function vllmConstants(version: string): EngineConstants {
  const minor = vllmMinor(version);
  if (minor < 8) return VLLM_V0;
  return minor < 14 ? { ...VLLM_V1, asyncScheduling: false } : VLLM_V1;
}

/** The number behind `0.` of a version of vLLM. */
function vllmMinor(version: string): number {
  return Number(/^0\.(\d+)/.exec(version)?.[1] ?? Number.POSITIVE_INFINITY);
}

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

export const VLLM_OVERHEADS: EngineOverheads = engines.overheads.vllm.values;

/** Overheads of an engine. @param version `0.<minor>` and what follows; others count as the newest. */
export function engineOverheads(engine: 'vllm' | 'sglang', version: string | null): EngineOverheads {
  const minor = vllmMinor(version ?? '');
  if (engine === 'sglang') return engines.overheads.sglang.values;
  // Newest first: a version takes the last entry that it is older than.
  return engines.overheads.vllmBefore.findLast(({ before }) => minor < before)?.values ?? VLLM_OVERHEADS;
}
