import type { SpeculationProfile } from '@servegym/simulator';
import type { Gpu } from '../data/gpu.ts';
import { parametersPerToken, type ServedModel } from '../data/served-model.ts';

/**
 * P(at least k draft tokens accepted), k = 1..8: EAGLE with Llama-3.1-8B-Instruct, four data sets, from
 * SpecDecode-Bench.
 */
const SURVIVAL: Readonly<Record<string, readonly number[]>> = {
  sharegpt: [0.6937, 0.4602, 0.3177, 0.2304, 0.175, 0.1376, 0.1095, 0.0782],
  gsm8k: [0.7157, 0.4815, 0.3147, 0.206, 0.1343, 0.0906, 0.0607, 0.0343],
  cnn: [0.6932, 0.4617, 0.3068, 0.2095, 0.1487, 0.1101, 0.0825, 0.0587],
  instructcoder: [0.7175, 0.5203, 0.3898, 0.3021, 0.2422, 0.1985, 0.1626, 0.1069],
};

// vLLM V1 on H100, Llama-3.1-8B: three draft passes take 2.14 ms, and 2.4 ns for each KV token.
const H100_PASS_US = 2140 / 3;
const H100_PER_CONTEXT_TOKEN_NS = 2.4;
const H100_MEMORY_GBPS = 3350;
const MEASURED_LAYERS = 32;
const MEASURED_HIDDEN = 4096;
const COMPUTE_EFFICIENCY = 0.65;

/**
 * An EAGLE draft for a model: one decoder layer and one projection beside the model's own output layer. Its time is
 * that measured for Llama-3.1-8B on H100, scaled by bytes read and memory bandwidth; its acceptance is that model's.
 */
export function eagleDraft(gpu: Gpu, model: ServedModel, count: number): SpeculationProfile {
  const ownLayerParameters = parametersPerToken(model) / model.layers;
  const projectionParameters = 2 * model.hiddenWidth ** 2;
  const ownParameters = ownLayerParameters + projectionParameters;
  const passParameters = ownParameters + model.embeddingParameters;
  const measuredPassParameters = 218e6 + 2 * MEASURED_HIDDEN ** 2 + 128_256 * MEASURED_HIDDEN;
  const slower = H100_MEMORY_GBPS / gpu.memoryGBps / count;
  const kvBytesPerLayer = model.kvBytesPerToken / model.layers;
  const measuredKvBytesPerLayer = 131_072 / MEASURED_LAYERS;
  return {
    method: 'EAGLE',
    draftGiB: round((2 * ownParameters) / 2 ** 30 / count),
    draftBaseUs: round(H100_PASS_US * slower * (passParameters / measuredPassParameters)),
    draftPerTokenUs: round((2 * passParameters) / (gpu.bf16Tflops * 1e6 * COMPUTE_EFFICIENCY * count)),
    draftPerContextTokenNs: round(
      H100_PER_CONTEXT_TOKEN_NS * slower * (kvBytesPerLayer / measuredKvBytesPerLayer),
    ),
    survival: SURVIVAL,
    source:
      'acceptance: SpecDecode-Bench, EAGLE, Llama-3.1-8B-Instruct; draft time: vLLM V1 on H100, scaled by memory bandwidth',
  };
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
