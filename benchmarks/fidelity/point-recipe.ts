import type { OperatingPoint } from '../../packages/profiles/src/tables/operating-points.ts';

/** Settings that a public operating point was measured with. */
export interface PointRecipe {
  /** Token budget of an iteration (SGLang chunked_prefill_size). */
  readonly budget: number;
  /** Share of the memory for weights and KV (SGLang mem_fraction_static); `null`: the engine's default. */
  readonly memoryShare: number | null;
  /** Iterations between two looks for new requests (SGLang scheduler_recv_interval). */
  readonly receiveEvery: number;
}

/** Default token budget on GPUs of 70 GiB and more. */
const DEFAULTS: PointRecipe = { budget: 8192, memoryShare: null, receiveEvery: 1 };

/**
 * Settings of a point: of rows of InferenceX on SGLang those of its public recipes (SemiAnalysisAI/InferenceX,
 * benchmarks/single_node: dsr1_fp8_b200.sh, dsr1_fp4_b200.sh, dsr1_fp8_h200.sh, qwen3.5_fp8_b200.sh,
 * qwen3.5_bf16_b200.sh, glm5_fp8_b200.sh), else the engine's defaults.
 */
export function pointRecipe(point: OperatingPoint): PointRecipe {
  const { engine, source, system, model, precision, tensor, concurrency } = point;
  if (engine !== 'sglang' || source !== 'InferenceX') return DEFAULTS;
  const isB200 = system === 'b200_sxm';
  const large = { ...DEFAULTS, budget: 32_768, memoryShare: 0.82 };
  if (/GLM/.test(model)) return { ...large, memoryShare: 0.85 };
  if (!isB200) return large;
  const receiveEvery = concurrency < 16 ? 10 : 30;
  if (!/DeepSeek/.test(model)) return { ...large, receiveEvery };
  if (precision === 'fp4') return { ...large, budget: 16_384, memoryShare: 0.85, receiveEvery };
  if (tensor === 4) return { budget: 8192, memoryShare: 0.95, receiveEvery: 10 };
  return { ...large, receiveEvery };
}
