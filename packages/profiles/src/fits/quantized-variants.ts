import type { EngineProfile, IterationLaw, WeightVariant } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import type { Gpu } from '../data/gpu.ts';
import quantizations from '../data/quantizations.json' with { type: 'json' };
import { expertParameters, layerParameters, type ServedModel } from '../data/served-model.ts';
import { fitLeavingOut, likelySpreads, mapLaw, type Observation, roundLaw } from './fit-law.ts';
import { BatchSimulator, type StaticBatchRow } from './simulated-batch.ts';

export type QuantizedPrecision = keyof typeof quantizations;

/** Precisions that an engine makes of 16-bit weights on a GPU. */
export function quantizedOn(gpu: Gpu): QuantizedPrecision[] {
  return gpu.fp8Tflops === null ? ['INT8', 'INT4'] : ['FP8', 'INT8', 'INT4'];
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

/** A fit with fewer rows would only repeat what it starts from. */
export const LEAST_ROWS = 4;

/**
 * Quantized weights fitted to latencies measured with them and a KV cache of their precision, else to speedups over FP16 with
 * any engine, over the profile's FP16 law; `undefined` where there are neither.
 *
 * @param rows Those of the profile's model and GPUs.
 */
export function fittedVariant(
  profile: EngineProfile,
  model: ServedModel,
  precision: QuantizedPrecision,
  rows: readonly StaticBatchRow[],
  { engine, source }: { readonly engine: string; readonly source: string },
): FittedVariant | undefined {
  const label = precision.toLowerCase();
  const quantized = rows.filter((row) => row.weights === label && row.kvCache === label);
  const own = quantized.filter((row) => isEngine(row, engine));
  const simulator = new BatchSimulator(profile, 'FP16');
  const fit = (
    measured: readonly { readonly row: StaticBatchRow; readonly seconds: number }[],
    spreadOf: 'weights' | 'weights and KV',
    stated: Pick<WeightVariant, 'status' | 'source'>,
  ): FittedVariant => {
    const observations = measured.map(
      ({ row, seconds }): Observation => ({
        measuredS: seconds,
        predictS: (law) => simulator.seconds(law, row),
      }),
    );
    const prior = { law: expectedLaw(profile, model, precision), spread: likelySpreads(spreadOf) };
    const fitted = fitLeavingOut(observations, prior, (observation) => observation);
    const heldOut = fitted.rows.map((row) => row.heldOut);
    const { quality } = quantizations[precision];
    const law = roundLaw(fitted.law);
    return {
      variant: { weightGiB: weightGiB(profile, model, precision), law, ...stated, quality },
      rows: measured.length,
      heldOutMeanErrorPercent: mean(heldOut),
      heldOutWorstErrorPercent: Math.max(...heldOut),
    };
  };
  if (own.length >= LEAST_ROWS) {
    const latencies = own.map((row) => ({ row, seconds: row.latencyS }));
    const text = `${source}; ${precision} weights with a KV cache in ${precision}, ${own.length} rows`;
    return fit(latencies, 'weights and KV', { status: 'measured', source: text });
  }
  const speedups = quantized.flatMap((row) => {
    const plain = rows.find(
      (other) => other.weights === 'fp16' && SAME.every((key) => other[key] === row[key]),
    );
    if (plain === undefined) return [];
    const speedup = plain.latencyS / row.latencyS;
    return [{ row, speedup, seconds: simulator.seconds(profile.weights.FP16!.law, row) / speedup }];
  });
  if (speedups.length === 0) return undefined;
  const listed = speedups.map(({ row, speedup }) => `${speedup.toFixed(2)}x at batch ${row.batch}`);
  return fit(speedups, 'weights', {
    status: 'estimated',
    source: `the FP16 law, with the speedups of ${precision} weights over FP16 measured with ${speedups[0].row.engine} (${listed.join(', ')})`,
  });
}

/** What two rows have in common whose latencies tell a speedup of their weights. */
const SAME = ['gpu', 'gpus', 'engine', 'model', 'kvCache', 'batch', 'inputTokens', 'outputTokens'] as const;

export function isEngine(row: StaticBatchRow, engine: string): boolean {
  return row.engine.toLowerCase() === engine.toLowerCase();
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
