import type { IterationLaw } from '../profiles/engine-profile.ts';
import type { Gpu } from './gpu.ts';
import { parametersPerToken, type ServedModel, streamedParameters } from './model.ts';

// Shares of the data sheet's figures that vLLM reaches in 16 bit, from the fits to A100, H100 and GH200.
const WEIGHT_READ_EFFICIENCY = 0.85;
const KV_READ_EFFICIENCY = 0.6;
const COMPUTE_EFFICIENCY = 0.65;
const PREFILL_ATTENTION_EFFICIENCY = 0.4;
/** CPU scheduling and kernel launches of an iteration. */
const BASE_US = 2000;
/** As `BASE_US`, with the all-reduces of tensor parallelism. */
const PARALLEL_BASE_US = 3800;
/** CPU work for one decoding sequence. */
const PER_DECODE_SEQUENCE_US = 40;

/** The law that the data sheets of `count` GPUs promise for a model with 16-bit weights. */
export function rooflineLaw(gpu: Gpu, model: ServedModel, count: number): IterationLaw {
  const bytesPerUs = gpu.memoryGBps * 1e3 * count;
  const flopsPerUs = gpu.bf16Tflops * 1e6 * count;
  const attentionFlops = 4 * model.attentionWidth * model.layers;
  return {
    baseUs: count === 1 ? BASE_US : PARALLEL_BASE_US,
    weightReadUs: (2 * streamedParameters(model)) / (bytesPerUs * WEIGHT_READ_EFFICIENCY),
    perTokenUs: (2 * parametersPerToken(model)) / (flopsPerUs * COMPUTE_EFFICIENCY),
    perDecodeSequenceUs: PER_DECODE_SEQUENCE_US,
    perContextTokenNs: (1e3 * model.kvBytesPerToken) / (bytesPerUs * KV_READ_EFFICIENCY),
    perPrefillAttentionNs: (1e3 * attentionFlops) / (flopsPerUs * PREFILL_ATTENTION_EFFICIENCY),
  };
}
