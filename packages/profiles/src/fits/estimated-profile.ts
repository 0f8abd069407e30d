import type { EngineProfile, IterationLaw, KvPrecision, WeightPrecision } from '@servegym/simulator';
import { type EngineConstants, VLLM_V1 } from '../data/engine-constants.ts';
import type { Gpu } from '../data/gpu.ts';
import {
  expertParameters,
  kvOn,
  parametersPerToken,
  type ServedModel,
  streamedParameters,
} from '../data/served-model.ts';
import { blankProfile, precisionsOn, withKvCache, withRoomForKv } from './blank-profile.ts';
import { roundLaw } from './fit-law.ts';
import { estimatedVariant } from './quantized-variants.ts';

/**
 * A profile that nothing was measured for: what the data sheets of GPU and model say, with the efficiencies that an
 * engine reaches elsewhere. Weights that leave no room for KV are left out.
 *
 * @param constants Default: vLLM V1.
 * @param kvCache Default: 16 bit.
 * @throws {ProfileError} when the weights fit in no precision.
 */
export function estimatedProfile(
  gpu: Gpu,
  model: ServedModel,
  count: number,
  constants: EngineConstants = VLLM_V1,
  kvCache: KvPrecision = 'FP16',
): EngineProfile {
  const source = `data sheets of ${gpu.name} and ${model.name}, with the efficiencies of ${constants.engine} ${constants.version} on ${gpu.efficientAs.toUpperCase()}${gpu.vendor === 'NVIDIA' ? '' : ', which nothing was measured for'}`;
  const plain = blankProfile({
    gpu,
    model,
    count,
    engine: {
      name: constants.engine,
      version: constants.version,
      ...(constants.asyncScheduling && { asyncScheduling: true }),
    },
    law: roundLaw(readingKv(rooflineLaw(gpu, model, count, constants), gpu, kvCache)),
    requestOverheadMs: constants.requestOverheadMs,
    status: 'estimated',
    source,
  });
  const weights = precisionsOf(gpu, model).map((precision) => [
    precision,
    precision === 'FP16' ? plain.weights.FP16 : estimatedVariant(plain, model, precision),
  ]);
  const all: EngineProfile = {
    ...withKvCache(plain, kvCache),
    weights: Object.fromEntries(weights),
    ...(constants.requestOverheadJitter > 0 && { requestOverheadJitter: constants.requestOverheadJitter }),
  };
  return { ...withRoomForKv(all), validity: { batch: [1, 128], contextTokens: [1, 2600] } };
}

/**
 * Time to read one token of FP8 KV against FP16. GPUs that multiply in FP8: Llama-3-8B in the kernel tables of vLLM 0.24, 0.55
 * on H100 and 0.52 on L40S. Others convert each value: static batches of Llama-3-8B with vLLM on A100-40GB
 * (LLM-Inference-Bench) take 1,260 to 1,310 ns longer for each token of context, which takes 124 ns in FP16.
 */
const FP8_KV_READ = { native: 0.55, converted: 11.4 };

function readingKv(law: IterationLaw, gpu: Gpu, kvCache: KvPrecision): IterationLaw {
  if (kvCache === 'FP16') return law;
  const factor = gpu.fp8Tflops === null ? FP8_KV_READ.converted : FP8_KV_READ.native;
  return { ...law, perContextTokenNs: law.perContextTokenNs * factor };
}

/** Precisions that a model can have on a GPU: that of its published weights, and those that an engine makes or finds. */
function precisionsOf(gpu: Gpu, { checkpoint, checkpoints }: ServedModel): WeightPrecision[] {
  const made: readonly WeightPrecision[] =
    checkpoint === 'FP16' ? ['FP16', 'FP8', 'INT8', 'INT4'] : [checkpoint];
  return precisionsOn(gpu, checkpoints.NVFP4 === undefined ? made : [...made, 'NVFP4']);
}

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
        kvOn(model, count).kvBytesPerToken / (bytesPerUs * kvRead),
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
