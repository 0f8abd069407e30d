/** Time that an engine adds to the kernels of an iteration, and to a request. */
export interface EngineOverheads {
  /** CPU scheduling between two iterations, us. */
  readonly iterationUs: number;
  /** Gaps between the kernels of a layer, us. */
  readonly perLayerUs: number;
  /** Added to it with tensor parallelism, us. */
  readonly parallelPerLayerUs: number;
  /** Added to it in a layer of experts, us. */
  readonly mixturePerLayerUs: number;
  /** Added to it in an iteration that prefills: its attention is launched by itself, us. */
  readonly prefillPerLayerUs: number;
  /** CPU work of one sequence, us. */
  readonly perSequenceUs: number;
  /** Time before a request is scheduled, ms. */
  readonly requestOverheadMs: number;
  /** Share of it that varies from request to request, exponentially distributed. */
  readonly requestOverheadJitter: number;
  /** Added to it for each prompt token, us. */
  readonly requestOverheadPerTokenUs: number;
}

/** vLLM V1, fitted to 50 served loads on H100, A100 and L40S with the kernel tables of the same GPUs. */
export const VLLM_OVERHEADS: EngineOverheads = {
  iterationUs: 565,
  perLayerUs: 2.9,
  parallelPerLayerUs: 3.3,
  mixturePerLayerUs: 3,
  prefillPerLayerUs: 35.4,
  perSequenceUs: 5.4,
  requestOverheadMs: 5.3,
  requestOverheadJitter: 0.6,
  requestOverheadPerTokenUs: 7,
};
