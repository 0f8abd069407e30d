import type { EngineProfile, IterationLaw, WeightVariant } from '../profiles/engine-profile.ts';
import { fitLaw } from './fit-law.ts';
import { lawFrom, roundLaw } from './law-coefficients.ts';
import { parametersPerToken, type ServedModel } from './model.ts';
import { simulateBatch, withLaw } from './simulated-batch.ts';
import type { StaticBatchRow } from './static-batch.ts';

/** Two measurements that differ in the precision of the weights only. */
export interface MeasuredSpeedup {
  readonly batch: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Latency with FP16 weights over latency with these. */
  readonly speedup: number;
}

/** INT8 matrix multiplication against FP16, share of the time. */
const INT8_COMPUTE = 0.6;
/** 4-bit groups with their scales against 16 bit, share of the bytes. */
const INT4_BYTES = 0.27;
/** INT4 weights are expanded to 16 bit before they are multiplied: prefill is 5 to 15 % slower. */
const INT4_COMPUTE = 1.1;

// Llama-3.1, 500,000 evaluations ("Give Me BF16 or Give Me Death?"): INT8 loses 1 to 3 %, INT4 about the same.
const INT8_QUALITY = 0.98;
const INT4_QUALITY = 0.98;

/** The pairs of rows, equal but for the weights, whose KV cache has the precision of the quantized weights. */
export function measuredSpeedups(rows: readonly StaticBatchRow[], weights: string): MeasuredSpeedup[] {
  return rows
    .filter((row) => row.weights === weights && row.kvCache === weights)
    .flatMap((quantized) => {
      const plain = rows.find((row) => row.weights === 'fp16' && isSameBut(row, quantized));
      if (plain === undefined) return [];
      const { batch, inputTokens, outputTokens, latencyS } = quantized;
      return [{ batch, inputTokens, outputTokens, speedup: plain.latencyS / latencyS }];
    });
}

function isSameBut(plain: StaticBatchRow, quantized: StaticBatchRow): boolean {
  const keys = ['gpu', 'gpus', 'engine', 'model', 'kvCache', 'batch', 'inputTokens', 'outputTokens'] as const;
  return keys.every((key) => plain[key] === quantized[key]);
}

/**
 * INT8 weights: fitted to the speedups over the profile's own FP16 law where there are any, else to bytes and
 * arithmetic alone.
 */
export function int8Variant(
  profile: EngineProfile,
  model: ServedModel,
  speedups: readonly MeasuredSpeedup[],
): WeightVariant {
  const plain = profile.weights.FP16!;
  const expected = scaledLaw(plain.law, byteShare(model, 0.5), INT8_COMPUTE);
  const observations = speedups.map((shape) => ({
    measuredS: simulateBatch(profile, 'FP16', shape) / shape.speedup,
    predictS: (law: IterationLaw) => simulateBatch(withLaw(profile, 'FP16', law), 'FP16', shape),
  }));
  const { law } = fitLaw(observations, {
    law: expected,
    spread: {
      baseUs: 0.05,
      weightReadUs: 0.2,
      perTokenUs: 0.2,
      perDecodeSequenceUs: 0.5,
      perContextTokenNs: 0.05,
      perPrefillAttentionNs: 0.05,
    },
  });
  const measured = `the speedups of INT8 weights over FP16 measured with TensorRT-LLM (${speedups
    .map(({ batch, speedup }) => `${speedup.toFixed(2)}x at batch ${batch}`)
    .join(', ')})`;
  return {
    weightGiB: weightGiB(plain, model, 0.5),
    law: roundLaw(law),
    status: 'estimated',
    source: `the FP16 law, with ${speedups.length > 0 ? measured : 'half the weight bytes and INT8 arithmetic'}`,
    quality: INT8_QUALITY,
  };
}

/** INT4 weights with 16-bit arithmetic (AWQ, GPTQ), from bytes and the cost of dequantization. */
export function int4Variant(profile: EngineProfile, model: ServedModel): WeightVariant {
  const plain = profile.weights.FP16!;
  return {
    weightGiB: weightGiB(plain, model, INT4_BYTES),
    law: roundLaw(scaledLaw(plain.law, byteShare(model, INT4_BYTES), INT4_COMPUTE)),
    status: 'estimated',
    source: `the FP16 law, with ${INT4_BYTES} of the bytes in the quantized layers and ${INT4_COMPUTE} of the compute for dequantization`,
    quality: INT4_QUALITY,
  };
}

function scaledLaw(law: IterationLaw, weightRead: number, perToken: number): IterationLaw {
  return lawFrom((name) => {
    if (name === 'weightReadUs') return law.weightReadUs * weightRead;
    if (name === 'perTokenUs') return law.perTokenUs * perToken;
    return law[name];
  });
}

/** Share of the streamed bytes that is left: the output layer stays in 16 bit. */
function byteShare(model: ServedModel, share: number): number {
  const quantized = parametersPerToken(model);
  return (quantized * share + model.embeddingParameters) / (quantized + model.embeddingParameters);
}

function weightGiB(plain: WeightVariant, model: ServedModel, share: number): number {
  const quantized = parametersPerToken(model) / model.parameters;
  return Number((plain.weightGiB * (1 - quantized * (1 - share))).toPrecision(4));
}
