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

/**
 * vLLM V1, which schedules an iteration while the one before it runs: a choice with which the kernel tables of H100 give the
 * time between tokens of 27 dense served loads without bias, and those of 100 closed loops of gpt-oss and MiniMax.
 */
export const VLLM_OVERHEADS: EngineOverheads = {
  iterationUs: 150,
  perLayerUs: 1,
  parallelPerLayerUs: 2,
  mixturePerLayerUs: 0,
  prefillPerLayerUs: 38,
  perSequenceUs: 5,
  requestOverheadMs: 6,
  requestOverheadJitter: 0.6,
  requestOverheadPerTokenUs: 7,
};
