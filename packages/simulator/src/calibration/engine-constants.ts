/** What an engine makes of the figures of data sheets, whatever the GPU and the model. */
export interface EngineConstants {
  /** Engine and version the constants are from, for instance `vLLM 0.15`. */
  readonly engine: string;
  readonly version: string;
  /** CPU scheduling and launches of an iteration, us. */
  readonly baseUs: number;
  /** Added with tensor parallelism, us. */
  readonly parallelBaseUs: number;
  /** Work of each layer that neither weights nor compute explain: small kernels, gaps, us. */
  readonly perLayerUs: number;
  /** Added to it for each doubling of the tensor parallelism: the all-reduces, us. */
  readonly parallelPerLayerUs: number;
  /** Sampling and output of one decoding sequence, us. */
  readonly perDecodeSequenceUs: number;
  /** Share of the memory bandwidth that reading weights reaches. */
  readonly weightReadEfficiency: number;
  /** Share of it that reads the weights of a mixture of experts. */
  readonly mixtureReadEfficiency: number;
  /** Share of the memory bandwidth that reading KV reaches. */
  readonly kvReadEfficiency: number;
  /** Share of the dense BF16 arithmetic that matrix multiplication reaches. */
  readonly computeEfficiency: number;
  /** Share of it that the attention of prefill reaches. */
  readonly prefillAttentionEfficiency: number;
  /** Share of the link between GPUs that all-reduces of prefill reach. `Infinity` leaves them out. */
  readonly allReduceEfficiency: number;
  /** Constant part of the time before a request is scheduled, ms. */
  readonly requestOverheadMs: number;
  /** The rest of it, in iterations without load: one where iterations are scheduled a step ahead. */
  readonly requestOverheadIterations: number;
  /** Share of it that varies from request to request, exponentially distributed. */
  readonly requestOverheadJitter: number;
}

/** vLLM before V1, from the static batches on A100, H100 and GH200. */
export const VLLM_V0: EngineConstants = {
  engine: 'vLLM',
  version: '0.5',
  baseUs: 2000,
  parallelBaseUs: 1800,
  perLayerUs: 0,
  parallelPerLayerUs: 0,
  perDecodeSequenceUs: 40,
  weightReadEfficiency: 0.85,
  mixtureReadEfficiency: 0.85,
  kvReadEfficiency: 0.6,
  computeEfficiency: 0.65,
  prefillAttentionEfficiency: 0.4,
  allReduceEfficiency: Number.POSITIVE_INFINITY,
  requestOverheadMs: 5,
  requestOverheadIterations: 0,
  requestOverheadJitter: 0,
};

/**
 * vLLM V1, fitted to twelve served loads on H100 with six models and tensor parallelism of 1, 2 and 4
 * (`benchmarks/engine-constants.ts` makes them again).
 */
export const VLLM_V1: EngineConstants = {
  engine: 'vLLM',
  version: '0.15',
  baseUs: 1050,
  parallelBaseUs: 0,
  perLayerUs: 22.3,
  parallelPerLayerUs: 11,
  perDecodeSequenceUs: 9.8,
  weightReadEfficiency: 0.935,
  mixtureReadEfficiency: 0.733,
  kvReadEfficiency: 0.858,
  computeEfficiency: 0.731,
  prefillAttentionEfficiency: 0.4,
  allReduceEfficiency: 0.717,
  requestOverheadMs: 3.08,
  requestOverheadIterations: 0.978,
  requestOverheadJitter: 0.4,
};
