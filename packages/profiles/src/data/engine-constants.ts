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
export interface Efficiencies {
  /** Memory bandwidth that reading weights reaches. */
  readonly weightRead: number;
  /** Memory bandwidth that reading KV reaches. */
  readonly kvRead: number;
  /** Dense BF16 arithmetic that matrix multiplication reaches. */
  readonly compute: number;
}

const V0_EFFICIENCIES: Efficiencies = { weightRead: 0.85, kvRead: 0.6, compute: 0.65 };

/** vLLM before V1, from the static batches on A100, H100 and GH200. */
export const VLLM_V0: EngineConstants = {
  engine: 'vLLM',
  version: '0.5',
  asyncScheduling: false,
  baseUs: 2000,
  parallelBaseUs: 1800,
  perLayerUs: 0,
  parallelPerLayerUs: 0,
  mixturePerLayerUs: 0,
  qkNormPerLayerUs: 0,
  prefillPerLayerUs: 0,
  perDecodeSequenceUs: 40,
  efficiencies: { a100: V0_EFFICIENCIES, l40s: V0_EFFICIENCIES, h100: V0_EFFICIENCIES },
  expertReadFactor: 1,
  prefillAttentionEfficiency: 0.4,
  allReduceEfficiency: Number.POSITIVE_INFINITY,
  requestOverheadMs: 5,
  requestOverheadJitter: 0,
};

/**
 * vLLM V1, fitted to 50 served loads on H100, A100 and L40S with eleven models and tensor parallelism of 1 to 8
 * (`benchmarks/run.ts engine-constants` fits again). Several constants stand for nearly the same time: fits from other starts end
 * with `qkNormPerLayerUs` of 20 to 37, say, and median errors within a point.
 */
export const VLLM_V1: EngineConstants = {
  engine: 'vLLM',
  version: '0.15',
  asyncScheduling: true,
  baseUs: 970,
  parallelBaseUs: 0,
  perLayerUs: 23.4,
  parallelPerLayerUs: 15.8,
  mixturePerLayerUs: 22.4,
  qkNormPerLayerUs: 21.8,
  prefillPerLayerUs: 40.5,
  perDecodeSequenceUs: 9.84,
  efficiencies: {
    a100: { weightRead: 0.656, kvRead: 0.678, compute: 0.691 },
    l40s: { weightRead: 0.705, kvRead: 0.857, compute: 0.623 },
    h100: { weightRead: 0.92, kvRead: 0.759, compute: 0.685 },
  },
  expertReadFactor: 1.02,
  prefillAttentionEfficiency: 0.4,
  allReduceEfficiency: 0.827,
  requestOverheadMs: 7.51,
  requestOverheadJitter: 0.6,
};

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
export function vllmMinor(version: string): number {
  return Number(/^0\.(\d+)/.exec(version)?.[1] ?? Number.POSITIVE_INFINITY);
}
