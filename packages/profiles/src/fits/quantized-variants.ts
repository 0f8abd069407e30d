import type { EngineProfile, IterationLaw, WeightVariant } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import type { Gpu } from '../data/gpu.ts';
import quantizations from '../data/quantizations.json' with { type: 'json' };
import { expertParameters, layerParameters, type ServedModel } from '../data/served-model.ts';
import {
  fitLeavingOut,
  type LawPrior,
  likelySpreads,
  mapLaw,
  type Observation,
  roundLaw,
} from './fit-law.ts';
import { type BatchShape, BatchSimulator, type StaticBatchRow } from './simulated-batch.ts';

/** Two measurements that differ in the precision of the weights only. */
export interface MeasuredSpeedup extends BatchShape {
  /** Latency with FP16 weights over latency with these. */
  readonly speedup: number;
  readonly engine: string;
}

export type QuantizedPrecision = keyof typeof quantizations;

/** Precisions that an engine makes of 16-bit weights on a GPU. */
export function quantizedOn(gpu: Gpu): QuantizedPrecision[] {
  return gpu.fp8Tflops === null ? ['INT8', 'INT4'] : ['FP8', 'INT8', 'INT4'];
}

/** The pairs of rows, equal but for the weights, whose KV cache has the precision of the quantized weights. */
export function measuredSpeedups(rows: readonly StaticBatchRow[], weights: string): MeasuredSpeedup[] {
  return rows
    .filter((row) => row.weights === weights && row.kvCache === weights)
    .flatMap((quantized) => {
      const plain = rows.find((row) => row.weights === 'fp16' && isSameButWeights(row, quantized));
      if (plain === undefined) return [];
      const { batch, inputTokens, outputTokens, engine } = quantized;
      return [{ batch, inputTokens, outputTokens, engine, speedup: plain.latencyS / quantized.latencyS }];
    });
}

function isSameButWeights(plain: StaticBatchRow, quantized: StaticBatchRow): boolean {
  const keys = ['gpu', 'gpus', 'engine', 'model', 'kvCache', 'batch', 'inputTokens', 'outputTokens'] as const;
  return keys.every((key) => plain[key] === quantized[key]);
}

/** Quantized weights from bytes and arithmetic alone, over the profile's FP16 law. */
export function estimatedVariant(
  profile: EngineProfile,
  model: ServedModel,
  precision: QuantizedPrecision,
): WeightVariant {
  const { quality, estimate } = quantizations[precision];
  return {
    weightGiB: weightGiB(profile, model, precision),
    law: roundLaw(expectedLaw(profile, model, precision)),
    status: 'estimated',
    source: `the FP16 law, with ${estimate}`,
    quality,
  };
}

/** Quantized weights, and how well their law reproduces what it was fitted to. Errors in percent. */
export interface FittedVariant {
  readonly variant: WeightVariant;
  readonly rows: number;
  readonly heldOutMeanErrorPercent: number;
  readonly heldOutWorstErrorPercent: number;
}

/** Quantized weights fitted to measured speedups over the profile's FP16 law, none fewer than one. */
export function variantFromSpeedups(
  profile: EngineProfile,
  model: ServedModel,
  precision: QuantizedPrecision,
  speedups: readonly MeasuredSpeedup[],
): FittedVariant {
  const measured = speedups.map(({ batch, speedup }) => `${speedup.toFixed(2)}x at batch ${batch}`);
  const secondsOf = (shape: MeasuredSpeedup, inFp16: number) => inFp16 / shape.speedup;
  return fittedVariant(profile, model, precision, speedups, secondsOf, likelySpreads('weights'), {
    status: 'estimated',
    source: `the FP16 law, with the speedups of ${precision} weights over FP16 measured with ${speedups[0].engine} (${measured.join(', ')})`,
  });
}

/** Quantized weights fitted to latencies measured with them. `profile` has the FP16 law to start from. */
export function measuredVariant(
  profile: EngineProfile,
  model: ServedModel,
  precision: QuantizedPrecision,
  rows: readonly StaticBatchRow[],
  source: string,
): FittedVariant {
  const kvCache = rows[0].kvCache.toUpperCase();
  return fittedVariant(
    profile,
    model,
    precision,
    rows,
    (row) => row.latencyS,
    likelySpreads('weights and KV'),
    {
      status: 'measured',
      source: `${source}; ${precision} weights with a KV cache in ${kvCache}, ${rows.length} rows`,
    },
  );
}

/** @param secondsOf Measured time of a batch, given its simulated time with FP16 weights. */
function fittedVariant<Shape extends BatchShape>(
  profile: EngineProfile,
  model: ServedModel,
  precision: QuantizedPrecision,
  shapes: readonly Shape[],
  secondsOf: (shape: Shape, inFp16: number) => number,
  spread: LawPrior['spread'],
  stated: Pick<WeightVariant, 'status' | 'source'>,
): FittedVariant {
  const simulator = new BatchSimulator(profile, 'FP16');
  const plain = profile.weights.FP16!.law;
  const observations = shapes.map(
    (shape): Observation => ({
      measuredS: secondsOf(shape, simulator.seconds(plain, shape)),
      predictS: (law) => simulator.seconds(law, shape),
    }),
  );
  const prior = { law: expectedLaw(profile, model, precision), spread };
  const { law, rows } = fitLeavingOut(observations, prior, (observation) => observation);
  const heldOut = rows.map((row) => row.heldOut);
  const { quality } = quantizations[precision];
  return {
    variant: { weightGiB: weightGiB(profile, model, precision), law: roundLaw(law), ...stated, quality },
    rows: observations.length,
    heldOutMeanErrorPercent: mean(heldOut),
    heldOutWorstErrorPercent: Math.max(...heldOut),
  };
}

/** The weights of a profile with fitted ones beside them, and estimates of the others that the GPU can have. */
export function besideQuantized(
  profile: EngineProfile,
  gpu: Gpu,
  model: ServedModel,
  fitted: Partial<Record<QuantizedPrecision, FittedVariant>> = {},
): EngineProfile['weights'] {
  const others = quantizedOn(gpu).map((precision) => [
    precision,
    fitted[precision]?.variant ?? estimatedVariant(profile, model, precision),
  ]);
  return { ...profile.weights, ...Object.fromEntries(others) };
}

function expectedLaw(
  profile: EngineProfile,
  model: ServedModel,
  precision: QuantizedPrecision,
): IterationLaw {
  const { parts, bytes, compute } = quantizationOf(model, precision);
  return mapLaw(profile.weights.FP16!.law, (value, name) => {
    if (name === 'weightReadUs') return parts === 'experts' ? value : value * byteShare(model, bytes);
    if (name === 'experts') return value * bytes;
    if (name === 'perTokenUs') return value * compute;
    return value;
  });
}

/** What quantized weights take: as the checkpoint says, else as usual. */
function quantizationOf({ checkpoint, quantized, experts }: ServedModel, precision: QuantizedPrecision) {
  if (checkpoint !== precision) return quantizations[precision];
  const { parts, ...bytes } = quantized ?? {};
  return { ...quantizations[precision], ...bytes, ...(experts && parts && { parts }) };
}

/** Share of the streamed bytes that is left: the output layer stays in 16 bit. */
function byteShare(model: ServedModel, share: number): number {
  const quantized = layerParameters(model);
  return (quantized * share + model.embeddingParameters) / (quantized + model.embeddingParameters);
}

function weightGiB(profile: EngineProfile, model: ServedModel, precision: QuantizedPrecision): number {
  const { parts, bytes } = quantizationOf(model, precision);
  const quantized =
    (parts === 'experts' ? expertParameters(model) : layerParameters(model)) / model.parameters;
  return Number((profile.weights.FP16!.weightGiB * (1 - quantized * (1 - bytes))).toPrecision(4));
}
