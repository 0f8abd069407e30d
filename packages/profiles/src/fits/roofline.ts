import type { IterationLaw } from '@servegym/simulator';
import type { EngineConstants } from '../data/engine-constants.ts';
import type { Gpu } from '../data/gpu.ts';
import {
  expertParameters,
  groupKvBytesPerToken,
  parametersPerToken,
  type ServedModel,
  streamedParameters,
} from '../data/served-model.ts';

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
  const perLayerUs =
    constants.perLayerUs +
    constants.parallelPerLayerUs * Math.log2(count) +
    (model.experts === null ? 0 : constants.mixturePerLayerUs) +
    (model.qkNorm ? constants.qkNormPerLayerUs : 0);
  const { weightRead, kvRead, compute } = constants.efficiencies[gpu.efficientAs];
  const readUs = (parameters: number) => (BYTES * parameters) / (bytesPerUs * weightRead);
  const ofExperts = expertParameters(model);
  return {
    baseUs: constants.baseUs + (isParallel ? constants.parallelBaseUs : 0) + perLayerUs * model.layers,
    weightReadUs: readUs(streamedParameters(model) - ofExperts),
    ...(model.experts && {
      experts: { ...model.experts, readUs: readUs(ofExperts) / constants.expertReadFactor },
    }),
    perTokenUs:
      (2 * parametersPerToken(model)) / (flopsPerUs * compute) +
      allReduceUs(gpu, model, count) / constants.allReduceEfficiency,
    perDecodeSequenceUs: constants.perDecodeSequenceUs,
    perContextTokenNs:
      1e3 *
      Math.max(
        groupKvBytesPerToken(model, count) / (bytesPerUs * kvRead),
        latentFlops(model) / (flopsPerUs * compute),
      ),
    perPrefillAttentionNs: (1e3 * attentionFlops) / (flopsPerUs * constants.prefillAttentionEfficiency),
    ...(constants.prefillPerLayerUs > 0 && { prefillLaunchUs: constants.prefillPerLayerUs * model.layers }),
  };
}

/** FLOPs of a decoding sequence for one context token in latent attention, which all heads compute with; else 0. */
function latentFlops({ shape, layers }: ServedModel): number {
  if (shape.mla === null) return 0;
  return 2 * layers * shape.queryHeads * (2 * shape.mla.kvRank + shape.mla.ropeSize);
}

/** Two ring all-reduces a layer move the activations of one token 2 (n - 1) / n times over the link. */
function allReduceUs(gpu: Gpu, model: ServedModel, count: number): number {
  const bytes = 2 * model.layers * model.hiddenWidth * BYTES * ((2 * (count - 1)) / count);
  return bytes / (gpu.linkGBps * 1e3);
}
