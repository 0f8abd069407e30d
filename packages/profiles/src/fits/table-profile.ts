import {
  type EngineProfile,
  type IterationLaw,
  type KvPrecision,
  kvMemoryGiB,
  kvPoolBlocks,
  type WeightPrecision,
  type WeightVariant,
} from '@servegym/simulator';
import type { Gpu } from '../data/gpu.ts';
import { expertParameters, groupKvBytesPerToken, type ServedModel } from '../data/served-model.ts';
import { layerCount } from '../data/transformer-shape.ts';
import { CalibrationError } from '../schema/calibration-error.ts';
import type { OperatorTables } from '../tables/operator-tables.ts';
import { BLOCK_TOKENS, blankProfile, FP8_KV_SUFFIX } from './blank-profile.ts';
import { type ComposedLaw, composedLaw, MOST_SEQUENCES, type RegionError } from './composed-law.ts';
import { type EngineOverheads, VLLM_OVERHEADS } from './engine-overheads.ts';
import { IterationComposition, type Parallelism, type TablePrecisions } from './iteration-composition.ts';
import { mapLaw, roundLaw } from './law-coefficients.ts';
import { estimatedVariant } from './quantized-variants.ts';

export interface TableProfileOptions {
  readonly gpu: Gpu;
  /** GPU that the tables were measured on, of the same architecture. Default: the same. */
  readonly measuredOn?: Gpu;
  readonly model: ServedModel;
  readonly parallel: Parallelism;
  /** Default: every precision that the tables have for this model. */
  readonly weights?: WeightPrecision;
  /** Default `FP16`. */
  readonly kvCache?: KvPrecision;
  /** Engine and version of the tables, for instance vLLM 0.24.0. */
  readonly engine: { readonly name: string; readonly version: string };
  /** Default: those of vLLM V1. */
  readonly overheads?: EngineOverheads;
  /** Default 1.2 GiB a GPU. */
  readonly memoryOverheadGiB?: number;
  readonly source: string;
  /** The command that makes the profile again. */
  readonly command: string;
}

export interface TableProfile {
  readonly profile: EngineProfile;
  /** Errors of each precision's law against the sums of kernel times, by kind of iteration. */
  readonly errors: Readonly<Partial<Record<WeightPrecision, readonly RegionError[]>>>;
  /** Sentences on what the tables do not have and what was taken instead. */
  readonly notes: readonly string[];
}

/** Names that the tables give a precision. */
function tableNames(precision: WeightPrecision, isMixture: boolean): Omit<TablePrecisions, 'kv'> | null {
  switch (precision) {
    case 'FP16':
      return of16Bit(['bfloat16']);
    case 'FP8':
      return { attention: 'fp8', feedForward: 'fp8', experts: ['fp8', 'fp8_block'], latent: 'fp8_block' };
    case 'NVFP4': {
      // Published mixtures keep their attention in 16 bit.
      const attention = isMixture ? 'bfloat16' : 'nvfp4';
      return { attention, feedForward: 'nvfp4', experts: ['nvfp4'], latent: attention };
    }
    case 'MXFP4':
      return of16Bit(['w4a16_mxfp4', 'w4a8_mxfp4_mxfp8']);
    default:
      return null;
  }
}

function of16Bit(experts: readonly string[]): Omit<TablePrecisions, 'kv'> {
  return { attention: 'bfloat16', feedForward: 'bfloat16', latent: 'bfloat16', experts };
}

const KV_NAMES = { FP16: 'bfloat16', FP8: 'fp8' } as const;
/** Longest context of the attention tables, tokens. */
const LONGEST_CONTEXT = 131_072;
/** Less than this for KV serves nobody, GiB a GPU. */
const LEAST_KV_GIB = 1;

/**
 * A profile whose iterations are sums of measured kernel times. Precisions that the tables do not have are left out, but
 * INT8 and INT4 weights of a dense model, which are estimated from its FP16 law.
 *
 * @throws {CalibrationError} when the tables have no precision of the model, or none fits the memory.
 */
export function tableProfile(tables: OperatorTables, options: TableProfileOptions): TableProfile {
  const { gpu, measuredOn = gpu, model, parallel, kvCache = 'FP16', engine, source, command } = options;
  const { overheads = VLLM_OVERHEADS } = options;
  requireDivisible(model, parallel);
  const count = parallel.tensor * parallel.pipeline * parallel.data;
  const start = blankProfile({
    ...{ gpu, model, count, source },
    engine: { ...engine, ...(overheads.asyncScheduling && { asyncScheduling: true }) },
    law: {
      baseUs: 0,
      weightReadUs: 1,
      perTokenUs: 1,
      perDecodeSequenceUs: 0,
      perContextTokenNs: 0,
      perPrefillAttentionNs: 0,
    },
    requestOverheadMs: overheads.requestOverheadMs,
    memoryOverheadGiB: options.memoryOverheadGiB,
    status: 'tables',
  });
  const kvBytesPerToken = groupKvBytesPerToken(model, parallel.tensor) / (kvCache === 'FP8' ? 2 : 1);
  const blank: EngineProfile = {
    ...start,
    ...divisionOf(parallel),
    name: `${profileName(gpu, model, parallel)}${kvCache === 'FP8' ? FP8_KV_SUFFIX : ''}`,
    model: { ...start.model, kvBytesPerToken, ...(kvCache === 'FP8' && { kvCache }) },
  };

  const weights: Partial<Record<WeightPrecision, WeightVariant>> = {};
  const errors: Partial<Record<WeightPrecision, readonly RegionError[]>> = {};
  const missing: CalibrationError[] = [];
  const wanted = options.weights === undefined ? precisionsOf(gpu, model) : [options.weights];
  for (const precision of wanted) {
    const names = tableNames(precision, model.experts !== null);
    if (names === null) continue;
    const plain = precision === 'FP16' ? blank.weights.FP16! : estimatedVariant(blank, model, precision);
    const variant = { ...plain, weightGiB: replicated(plain.weightGiB, model, parallel) };
    try {
      const composition = new IterationComposition(
        tables,
        model.shape,
        measuredOn,
        parallel,
        { ...names, kv: KV_NAMES[kvCache] },
        overheads,
      );
      const sized: EngineProfile = { ...blank, weights: { [precision]: variant } };
      const composed = composedLaw(composition, {
        isMixture: model.experts !== null,
        kvTokens: Math.max(0, kvPoolBlocks(sized, precision, false, 1)) * BLOCK_TOKENS,
      });
      weights[precision] = { ...variant, law: onGpu(composed, gpu, measuredOn), status: 'tables', source };
      errors[precision] = composed.errors;
    } catch (error) {
      if (!(error instanceof CalibrationError)) throw error;
      missing.push(error);
    }
  }
  if (weights.FP16 !== undefined && model.experts === null && options.weights === undefined) {
    const measured = { ...blank, weights: { FP16: weights.FP16 } };
    for (const precision of ['INT8', 'INT4'] as const) {
      weights[precision] = estimatedVariant(measured, model, precision);
    }
  }
  if (Object.keys(weights).length === 0) {
    throw (
      missing[0] ??
      new CalibrationError(
        'CALIBRATION_TABLES',
        `expected weights that kernel tables have (FP16, FP8, NVFP4, MXFP4), got ${wanted.join(', ')}`,
      )
    );
  }
  const all: EngineProfile = { ...blank, weights };
  const fitting = (Object.keys(weights) as WeightPrecision[]).filter(
    (precision) => kvMemoryGiB(all, precision, false) >= LEAST_KV_GIB,
  );
  if (fitting.length === 0) {
    throw new CalibrationError(
      'CALIBRATION_HARDWARE',
      `expected weights that fit ${count} x ${gpu.name}, got ${model.name} in ${Object.keys(weights).join(', ')}`,
    );
  }
  const regions = fitting.flatMap((precision) => errors[precision] ?? []);
  const rows = regions.reduce((sum, { iterations }) => sum + iterations, 0);
  const meanError =
    regions.reduce((sum, { iterations, meanPercent }) => sum + iterations * meanPercent, 0) / rows;
  const worst = Math.max(...regions.map(({ worstPercent }) => worstPercent));
  const profile: EngineProfile = {
    ...all,
    requestOverheadJitter: overheads.requestOverheadJitter,
    requestOverheadPerTokenUs: overheads.requestOverheadPerTokenUs,
    fit: {
      rows,
      meanErrorPercent: hundredths(meanError),
      worstErrorPercent: hundredths(worst),
      // No iteration that errors are stated for is one that the law was taken from.
      heldOutMeanErrorPercent: hundredths(meanError),
      heldOutWorstErrorPercent: hundredths(worst),
      command,
    },
    validity: {
      batch: [1, MOST_SEQUENCES],
      contextTokens: [1, Math.min(LONGEST_CONTEXT, model.contextTokens)],
    },
    weights: Object.fromEntries(fitting.map((precision) => [precision, weights[precision]])),
  };
  return { profile, errors, notes: [...tables.notes] };
}

/** Precisions to look for: that of the published weights, and those that an engine makes of 16-bit ones. */
function precisionsOf(gpu: Gpu, { checkpoint, checkpoints }: ServedModel): WeightPrecision[] {
  const published = Object.keys(checkpoints) as WeightPrecision[];
  const made: WeightPrecision[] = checkpoint === 'FP16' ? ['FP16', 'FP8'] : [];
  return [...new Set([checkpoint, ...made, ...published])].filter(
    (precision) =>
      (precision !== 'FP8' || gpu.fp8Tflops !== null) && (precision !== 'NVFP4' || gpu.fp4Tflops !== null),
  );
}

function requireDivisible(
  { name, shape }: ServedModel,
  { tensor, pipeline, data, expert }: Parallelism,
): void {
  const wrong = (expected: string, got: string) =>
    new CalibrationError('CALIBRATION_HARDWARE', `expected ${expected}, got ${got}`);
  if (shape.queryHeads % tensor !== 0)
    throw wrong(`a tensor parallelism that divides the ${shape.queryHeads} heads of ${name}`, `${tensor}`);
  if (pipeline > layerCount(shape))
    throw wrong(`at most ${layerCount(shape)} stages for ${name}`, `${pipeline}`);
  if (expert !== 1 && expert !== tensor * data)
    throw wrong(`experts on 1 or all ${tensor * data} GPUs of a stage`, `${expert}`);
}

/** As `<gpu>-<model>[-tpN][-epN][-dpN][-ppN]`. */
function profileName(gpu: Gpu, model: ServedModel, { tensor, expert, data, pipeline }: Parallelism): string {
  const parts = Object.entries({ tp: tensor, ep: expert, dp: data, pp: pipeline })
    .filter(([, size]) => size > 1)
    .map(([name, size]) => `-${name}${size}`);
  return `${gpu.id}-${model.id}${parts.join('')}`;
}

function divisionOf({ data, expert, pipeline }: Parallelism): Pick<EngineProfile, 'parallel'> {
  const sizes = Object.entries({ data, expert, pipeline }).filter(([, size]) => size > 1);
  return sizes.length === 0 ? {} : { parallel: Object.fromEntries(sizes) };
}

/** Weights on each GPU when each replica of the attention has its own but for the experts, GiB. */
function replicated(weightGiB: number, model: ServedModel, { data }: Parallelism): number {
  const experts = expertParameters(model) / model.parameters;
  return Number((weightGiB * (experts + (1 - experts) * data)).toPrecision(4));
}

/** The law on a GPU of the same architecture with other bandwidth and arithmetic. */
function onGpu({ law }: ComposedLaw, gpu: Gpu, measuredOn: Gpu): IterationLaw {
  if (gpu === measuredOn) return law;
  const memory = measuredOn.memoryGBps / gpu.memoryGBps;
  const compute = measuredOn.bf16Tflops / gpu.bf16Tflops;
  return roundLaw(
    mapLaw(law, (value, name) => {
      if (name === 'weightReadUs' || name === 'perContextTokenNs') return value * memory;
      if (name === 'perTokenUs' || name === 'perPrefillAttentionNs') return value * compute;
      return value;
    }),
  );
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
