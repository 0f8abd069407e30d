import { type EngineProfile, type IterationLaw, kvPoolBlocks } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { VLLM_V0 } from '../data/engine-constants.ts';
import { isCalled } from '../data/named.ts';
import type { ServedModel } from '../data/served-model.ts';
import { BLOCK_TOKENS, blankProfile, type CalibrationOptions } from './blank-profile.ts';
import { rooflineLaw } from './estimated-profile.ts';
import { checkRows, fitErrors, fitLeavingOut, type LawPrior, likelySpreads, roundLaw } from './fit-law.ts';
import {
  besideQuantized,
  type FittedVariant,
  fittedVariant,
  isEngine,
  LEAST_ROWS,
  type QuantizedPrecision,
  quantizedOn,
} from './quantized-variants.ts';
import { BatchSimulator, type StaticBatchRow, withLaw } from './simulated-batch.ts';

/** Sequences x query heads of a GPU up to which vLLM splits the context of a sequence over the GPU. */
const FEW_HEADS = 512;

export interface StaticBatchOptions extends CalibrationOptions {
  /** GPUs of the tensor-parallel group. Default 1. */
  readonly count?: number;
  /** Engine of the rows. Default `vLLM`. */
  readonly engine?: string;
}

export type StaticBatchCalibration = ReturnType<typeof calibrateStaticBatches>;

/**
 * Makes a profile from static-batch latencies with FP16 weights and KV cache. INT8 and INT4 weights are estimated from
 * it, with measured INT8 speedups where `rows` has pairs of them for this model and GPU.
 *
 * @throws {ProfileError} when fewer than four rows are left.
 */
export function calibrateStaticBatches(rows: readonly StaticBatchRow[], options: StaticBatchOptions) {
  const { gpu, model, count = 1, engine = 'vLLM', source } = options;
  const hardwareRows = rows.filter(
    (row) => row.gpus === count && isCalled(gpu, row.gpu) && isCalled(model, row.model),
  );
  const candidates = hardwareRows.filter(
    (row) => isEngine(row, engine) && row.weights === 'fp16' && row.kvCache === 'fp16',
  );
  const prior: LawPrior = { law: rooflineLaw(gpu, model, count, VLLM_V0), spread: likelySpreads('batches') };
  const blank = blankProfile({
    gpu,
    model,
    count,
    engine: { name: engine, version: 'not recorded' },
    law: prior.law,
    requestOverheadMs: VLLM_V0.requestOverheadMs,
    memoryOverheadGiB: options.memoryOverheadGiB,
    status: 'measured',
    source,
  });
  const poolTokens = kvPoolBlocks(blank, 'FP16', false, 1) * BLOCK_TOKENS;
  const fits = (row: StaticBatchRow) => row.batch * (row.inputTokens + row.outputTokens) <= poolTokens;
  const fitted = candidates.filter(fits);
  const wanted = `rows of ${engine} with ${model.name} on ${count} x ${gpu.name}, FP16 weights and KV cache`;
  checkRows(fitted.length, LEAST_ROWS, wanted);

  const simulator = new BatchSimulator(blank, 'FP16');
  const best = laws(prior, model, count, fitted)
    .map((candidate) => fitRows(simulator, candidate, fitted))
    .reduce((least, other) => (other.heldOutRms < least.heldOutRms ? other : least));
  const overflowing = candidates
    .filter((row) => !fits(row))
    .map((row) => ({ ...row, predictedS: simulator.seconds(best.law, row) }));

  const measured = withLaw(blank, 'FP16', best.law);
  const quantized: Partial<Record<QuantizedPrecision, FittedVariant>> = Object.fromEntries(
    quantizedOn(gpu).flatMap((precision) => {
      const variant = fittedVariant(measured, model, precision, hardwareRows, { engine, source });
      return variant === undefined ? [] : [[precision, variant]];
    }),
  );
  const totals = fitted.map((row) => row.inputTokens + row.outputTokens);
  const batches = fitted.map((row) => row.batch);
  const profile: EngineProfile = {
    ...measured,
    fit: fitErrors(options.command, best.rows),
    validity: {
      batch: [Math.min(...batches), Math.max(...batches)],
      contextTokens: [1, Math.max(...totals)],
    },
    weights: besideQuantized(measured, gpu, model, quantized),
  };
  return {
    profile,
    /** Measured rows beside what the profile makes of them, and what a fit predicts that left them out. */
    rows: best.rows.map(({ observation, predictedS, heldOutS }) => ({
      ...observation.row,
      predictedS,
      heldOutS,
    })),
    /** Rows that do not fit the KV pool at once. They take no part in the fit: they check the size of the pool. */
    overflowing,
    determined: best.determined,
    /** Quantized weights that were fitted too, to latencies or to speedups. */
    quantized,
  };
}

/** Laws to try: plain, bound by launches, and with a coefficient of its own for the attention of many sequences. */
function laws(prior: LawPrior, model: ServedModel, count: number, rows: readonly StaticBatchRow[]) {
  const above = Math.floor((FEW_HEADS * count) / model.queryHeads);
  const batches = rows.map((row) => row.batch);
  const launchBound: LawPrior = { ...prior, law: { ...prior.law, launchBound: true } };
  if (Math.max(...batches) <= above || Math.min(...batches) > above) return [prior, launchBound];
  const manySequences = { above, perContextTokenNs: prior.law.perContextTokenNs };
  return [prior, launchBound, { ...prior, law: { ...prior.law, manySequences } }];
}

/** A law fitted to rows, and the root mean square of its errors on rows left out, percent. */
function fitRows(simulator: BatchSimulator, prior: LawPrior, fitted: readonly StaticBatchRow[]) {
  const observations = fitted.map((row) => ({
    row,
    measuredS: row.latencyS,
    predictS: (law: IterationLaw) => simulator.seconds(law, row),
  }));
  // Repeated measurements of one shape are left out together, or the other would give the answer away.
  const shapeOf = ({ row }: (typeof observations)[number]) =>
    `${row.batch} x ${row.inputTokens} + ${row.outputTokens}`;
  const fit = fitLeavingOut(observations, prior, shapeOf, roundLaw);
  return { ...fit, heldOutRms: Math.sqrt(mean(fit.rows.map(({ heldOut }) => heldOut ** 2))) };
}
