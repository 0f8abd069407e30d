import {
  type EngineProfile,
  type IterationLaw,
  type KvPrecision,
  kvPoolBlocks,
  kvTokens,
  type WeightPrecision,
  type WeightVariant,
} from '@servegym/simulator';
import { type EngineOverheads, statedOverheads } from '../data/engine-constants.ts';
import type { Gpu } from '../data/gpu.ts';
import { expertParameters, kvOn, type ServedModel } from '../data/served-model.ts';
import { layerCount } from '../data/transformer-shape.ts';
import { ProfileError } from '../schema/read-json.ts';
import type { OperatorRows, OperatorTables } from '../tables/operator-tables.ts';
import { compareVersions, readOperatorTables } from '../tables/read-operator-tables.ts';
import {
  blankProfile,
  type CalibrationOptions,
  precisionsOn,
  withKvCache,
  withRoomForKv,
} from './blank-profile.ts';
import { type ComposedLaw, composedLaw, MOST_SEQUENCES, type RegionError } from './composed-law.ts';
import { hundredths, mapLaw, roundLaw } from './fit-law.ts';
import { IterationComposition, type Parallelism, type TablePrecisions } from './iteration-composition.ts';
import { estimatedVariant } from './quantized-variants.ts';

export interface TableProfileOptions extends CalibrationOptions {
  /** GPU that the tables were measured on, of the same architecture. Default: the same. */
  readonly measuredOn?: Gpu;
  readonly parallel: Parallelism;
  /** Default: every precision that the tables have for this model. */
  readonly weights?: WeightPrecision;
  /** Default `FP16`. */
  readonly kvCache?: KvPrecision;
  /** Engine and version of the tables, for instance vLLM 0.24.0. */
  readonly engine: { readonly name: string; readonly version: string };
  /** Default: those of vLLM V1. */
  readonly overheads?: EngineOverheads;
}

export interface TableProfile {
  readonly profile: EngineProfile;
  /** Errors of each precision's law against the sums of kernel times, by kind of iteration. */
  readonly errors: Readonly<Partial<Record<WeightPrecision, readonly RegionError[]>>>;
  /** Sentences on what the tables do not have and what was taken instead. */
  readonly notes: readonly string[];
}

/** Names that the tables give a precision of a model's weights. */
function tableNames(
  precision: WeightPrecision,
  { experts, fp8Blocks = false }: ServedModel,
  { expertPrecisions }: OperatorTables,
): Omit<TablePrecisions, 'kv'> | null {
  const isMixture = experts !== null;
  switch (precision) {
    case 'FP16':
      return of16Bit(['bfloat16']);
    case 'FP8':
      return {
        ...{ attention: 'fp8', feedForward: 'fp8', latent: 'fp8_block' },
        // Experts with a scale for each block have kernels of their own, which are all that an engine can take.
        experts: fp8Blocks && expertPrecisions.includes('fp8_block') ? ['fp8_block'] : ['fp8', 'fp8_block'],
      };
    case 'NVFP4': {
      // Published mixtures keep their attention in 16 bit.
      const attention = isMixture ? 'bfloat16' : 'nvfp4';
      return { attention, feedForward: 'nvfp4', experts: ['nvfp4'], latent: attention };
    }
    case 'MXFP4':
      return of16Bit(['w4a16_mxfp4', 'w4a8_mxfp4_mxfp8']);
    case 'INT4':
      // Marlin's kernels. The tables have experts alone: no matrix multiplication with weights of 4 bits.
      return isMixture ? of16Bit(['int4_wo']) : null;
    default:
      return null;
  }
}

function of16Bit(experts: readonly string[]): Omit<TablePrecisions, 'kv'> {
  return { attention: 'bfloat16', feedForward: 'bfloat16', latent: 'bfloat16', experts };
}

/** Precisions of dense models that the tables lack. */
const FROM_FP16 = ['INT8', 'INT4'] as const;
const KV_NAMES = { FP16: 'bfloat16', FP8: 'fp8' } as const;
/** Longest context of the attention tables, tokens. */
const LONGEST_CONTEXT = 131_072;

/**
 * A profile whose iterations are sums of measured kernel times. Precisions that the tables do not have are left out, but
 * INT8 and INT4 weights of a dense model, which are estimated from its FP16 law.
 *
 * @throws {ProfileError} when the tables have no precision of the model, or none fits the memory.
 */
export function tableProfile(tables: OperatorTables, options: TableProfileOptions): TableProfile {
  const { model, parallel, overheads = statedOverheads('vllm', null).values } = options;
  requireDivisible(model, parallel);
  const blank = blankDivision(options, overheads);
  const { weights, errors } = weightsOf(tables, blank, options, overheads);
  const all = withRoomForKv({ ...blank, weights });
  const stated = (Object.keys(all.weights) as WeightPrecision[]).map((each) => errors[each] ?? errors.FP16);
  const regions = [...new Set(stated)].flatMap((each) => each ?? []);
  const rows = regions.reduce((sum, { iterations }) => sum + iterations, 0);
  const total = regions.reduce((sum, { iterations, meanPercent }) => sum + iterations * meanPercent, 0);
  const [meanError, worstError] = [total / rows, Math.max(...regions.map((region) => region.worstPercent))];
  const profile: EngineProfile = {
    ...all,
    requestOverheadJitter: overheads.requestOverheadJitter,
    requestOverheadPerTokenUs: overheads.requestOverheadPerTokenUs,
    fit: {
      rows,
      meanErrorPercent: hundredths(meanError),
      worstErrorPercent: hundredths(worstError),
      // No iteration that errors are stated for is one that the law was taken from.
      heldOutMeanErrorPercent: hundredths(meanError),
      heldOutWorstErrorPercent: hundredths(worstError),
      command: options.command,
    },
    validity: {
      batch: [1, MOST_SEQUENCES],
      contextTokens: [1, Math.min(LONGEST_CONTEXT, model.contextTokens)],
    },
  };
  return { profile, errors, notes: [...tables.notes] };
}

/**
 * The profile of an engine from the kernel tables in a folder, and what it rests on.
 *
 * @param asked `vllm` or `sglang`, with a version such as `vllm-0.12` or the newest.
 * @throws {ProfileError} as `readOperatorTables` and `tableProfile` do.
 */
export async function profileFromTables(
  folder: string,
  asked: string,
  options: Omit<TableProfileOptions, 'measuredOn' | 'engine' | 'overheads' | 'source'> & {
    readonly source?: string | undefined;
  },
) {
  const { gpu } = options;
  const { measuredOn, tables, versions, engine } = await readOperatorTables(folder, gpu, asked);
  const [, family, before] = /^(vllm|sglang)-(\d+(?:\.\d+)*)/i.exec(asked) ?? [];
  const name = engine.name === 'SGLang' ? 'sglang' : 'vllm';
  const ownTime = statedOverheads(name, before ?? null);
  // The version that was asked for where the engine's own time is not that of the tables' version.
  const isOther = family !== undefined && ownTime.values !== statedOverheads(name, null).values;
  const made = tableProfile(tables, {
    ...options,
    ...{ measuredOn, overheads: ownTime.values },
    engine: { name: engine.name, version: isOther ? before : engine.version },
    source:
      options.source ??
      `kernel tables of ${measuredOn.name} with ${engine.name} ${engine.version} (aiconfigurator-core)`,
  });
  const scaled = `scaled by bandwidth and arithmetic from ${measuredOn.name}, which the tables are of`;
  return {
    ...made,
    notes: [...(measuredOn.id === gpu.id ? [] : [scaled]), ...made.notes],
    /** Version of each table that times were taken from. */
    versions: versions.filter((each) => tables.used.has(each.split(' ')[0] as keyof OperatorRows)),
    /** Whether the version that was asked for is newer than all tables, of which the newest is `newest`. */
    ...{
      isNewer: before !== undefined && compareVersions(before, engine.version) > 0,
      newest: engine.version,
    },
    /** Source of the engine's own time. */
    ownTime: ownTime.source,
  };
}

/**
 * The profile of a vLLM that was started with or without asynchronous scheduling: without it, CPU work between iterations adds to
 * their time, as `engines.json` has it for the profile's version.
 */
export function rescheduled(profile: EngineProfile, asyncScheduling: boolean): EngineProfile {
  const { name, version, asyncScheduling: before = false } = profile.engine;
  const engine = { ...profile.engine, asyncScheduling };
  if (asyncScheduling === before || name !== 'vLLM') return { ...profile, engine };
  const [old, now] = [before, asyncScheduling].map((each) => statedOverheads('vllm', version, each).values);
  const more = (key: 'iterationUs' | 'perSequenceUs') => now[key] - old[key];
  const weights = Object.entries(profile.weights).map(([precision, { law, ...variant }]) => {
    const baseUs = Math.max(0, law.baseUs + more('iterationUs'));
    const perDecodeSequenceUs = Math.max(0, law.perDecodeSequenceUs + more('perSequenceUs'));
    return [precision, { ...variant, law: { ...law, baseUs, perDecodeSequenceUs } }];
  });
  return { ...profile, engine, weights: Object.fromEntries(weights) };
}

/** A profile of the divided model without a law. */
function blankDivision(options: TableProfileOptions, overheads: EngineOverheads): EngineProfile {
  const { gpu, model, parallel, kvCache = 'FP16', engine, source } = options;
  const start = blankProfile({
    gpu,
    model,
    count: parallel.tensor * parallel.pipeline * parallel.data,
    source,
    engine: {
      ...engine,
      ...(overheads.asyncScheduling && { asyncScheduling: true }),
      ...(overheads.prefillFirst && { prefillFirst: true }),
    },
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
  const blank: EngineProfile = {
    ...start,
    ...divisionOf(parallel),
    name: profileName(gpu, model, parallel),
    model: { name: model.name, ...kvOn(model, parallel.tensor) },
  };
  return withKvCache(blank, kvCache);
}

/** The weights that the tables have, and the errors of their laws. @throws {ProfileError} when they have none. */
function weightsOf(
  tables: OperatorTables,
  blank: EngineProfile,
  { gpu, measuredOn = gpu, model, parallel, kvCache = 'FP16', source, weights: only }: TableProfileOptions,
  overheads: EngineOverheads,
) {
  const weights: Partial<Record<WeightPrecision, WeightVariant>> = {};
  const errors: Partial<Record<WeightPrecision, readonly RegionError[]>> = {};
  const isMixture = model.experts !== null;
  let missing: ProfileError | undefined;
  const wanted = only === undefined ? precisionsOf(gpu, model) : [only];
  const isOffered = only === undefined && wanted.includes('FP16');
  const estimated = isMixture ? [] : FROM_FP16.filter((each) => isOffered || wanted.includes(each));
  const composed = new Set<WeightPrecision>(estimated.length > 0 ? [...wanted, 'FP16'] : wanted);
  for (const precision of composed) {
    const names = tableNames(precision, model, tables);
    if (names === null) continue;
    const plain = precision === 'FP16' ? blank.weights.FP16! : estimatedVariant(blank, model, precision);
    const variant = { ...plain, weightGiB: replicated(plain.weightGiB, model, parallel) };
    const sized: EngineProfile = { ...blank, weights: { [precision]: variant } };
    try {
      const composition = new IterationComposition({
        ...{ tables, shape: model.shape, gpu: measuredOn, parallel, overheads },
        precisions: { ...names, kv: KV_NAMES[kvCache] },
      });
      const pool = Math.max(0, kvTokens(sized, kvPoolBlocks(sized, precision, false, 1)));
      const law = composedLaw(composition, { isMixture, kvTokens: pool });
      weights[precision] = { ...variant, law: onGpu(law, gpu, measuredOn), status: 'tables', source };
      errors[precision] = law.errors;
    } catch (error) {
      if (!(error instanceof ProfileError)) throw error;
      missing ??= error;
    }
  }
  if (weights.FP16 !== undefined) {
    const measured = { ...blank, weights: { FP16: weights.FP16 } };
    for (const precision of estimated) weights[precision] = estimatedVariant(measured, model, precision);
    if (!wanted.includes('FP16')) delete weights.FP16;
  }
  if (Object.keys(weights).length > 0) return { weights, errors };
  const expected = 'weights that kernel tables have (FP16, FP8, NVFP4, MXFP4, experts in INT4)';
  throw missing ?? new ProfileError('CALIBRATION_TABLES', '', expected, wanted.join(', '));
}

/** Precisions to look for: that of the published weights, and those that an engine makes of 16-bit ones. */
function precisionsOf(gpu: Gpu, { checkpoint, checkpoints }: ServedModel): WeightPrecision[] {
  const made: WeightPrecision[] = checkpoint === 'FP16' ? ['FP16', 'FP8'] : [];
  return precisionsOn(gpu, [checkpoint, ...made, ...(Object.keys(checkpoints) as WeightPrecision[])]);
}

function requireDivisible(
  { name, shape }: ServedModel,
  { tensor, pipeline, data, expert }: Parallelism,
): void {
  const wrong = (expected: string, got: string) =>
    new ProfileError('CALIBRATION_HARDWARE', '', expected, got);
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
