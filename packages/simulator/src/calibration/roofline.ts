import type { IterationLaw } from '../profiles/engine-profile.ts';
import type { EngineConstants } from './engine-constants.ts';
import type { Gpu } from './gpu.ts';
import { expertParameters, parametersPerToken, type ServedModel, streamedParameters } from './model.ts';

/** Bytes of a 16-bit number. */
const BYTES = 2;

/** The law that the data sheets of `count` GPUs promise under an engine, for a model with 16-bit weights. */
export function rooflineLaw(
  gpu: Gpu,
  model: ServedModel,
  count: number,
  constants: EngineConstants,
): IterationLaw {
  const bytesPerUs = gpu.memoryGBps * 1e3 * count;
  const flopsPerUs = gpu.bf16Tflops * 1e6 * count;
  const attentionFlops = 4 * model.attentionWidth * model.layers;
  const isParallel = count > 1;
  const perLayerUs = constants.perLayerUs + constants.parallelPerLayerUs * Math.log2(count);
  const readEfficiency =
    model.experts === null ? constants.weightReadEfficiency : constants.mixtureReadEfficiency;
  const readUs = (parameters: number) => (BYTES * parameters) / (bytesPerUs * readEfficiency);
  const ofExperts = expertParameters(model);
  return {
    baseUs: constants.baseUs + (isParallel ? constants.parallelBaseUs : 0) + perLayerUs * model.layers,
    weightReadUs: readUs(streamedParameters(model) - ofExperts),
    ...(model.experts && { experts: { ...model.experts, readUs: readUs(ofExperts) } }),
    perTokenUs:
      (2 * parametersPerToken(model)) / (flopsPerUs * constants.computeEfficiency) +
      allReduceUs(gpu, model, count) / constants.allReduceEfficiency,
    perDecodeSequenceUs: constants.perDecodeSequenceUs,
    perContextTokenNs: (1e3 * model.kvBytesPerToken) / (bytesPerUs * constants.kvReadEfficiency),
    perPrefillAttentionNs: (1e3 * attentionFlops) / (flopsPerUs * constants.prefillAttentionEfficiency),
  };
}

/** Time before a request is scheduled, ms. */
export function requestOverheadMs(law: IterationLaw, constants: EngineConstants): number {
  const idleIterationMs = (law.baseUs + law.weightReadUs + (law.experts?.readUs ?? 0)) / 1000;
  return constants.requestOverheadMs + constants.requestOverheadIterations * idleIterationMs;
}

/** Two ring all-reduces a layer move the activations of one token 2 (n - 1) / n times over the link. */
function allReduceUs(gpu: Gpu, model: ServedModel, count: number): number {
  const bytes = 2 * model.layers * model.hiddenWidth * BYTES * ((2 * (count - 1)) / count);
  return bytes / (gpu.linkGBps * 1e3);
}
