import {
  type EngineProfile,
  type IterationLaw,
  type KvPrecision,
  kvMemoryGiB,
  type WeightPrecision,
} from '@servegym/simulator';
import { findGpu, type Gpu } from '../data/gpu.ts';
import { findModel, modelFromConfig } from '../data/model-config.ts';
import { kvOn, layerParameters, parametersPerToken, type ServedModel } from '../data/served-model.ts';
import { ProfileError } from '../schema/read-json.ts';

export const BLOCK_TOKENS = 16;
/** vLLM's default share of the GPU. */
const UTILIZATION = 0.9;
/** Memory of activations and CUDA graphs in the runs whose pool size is known, GiB. */
const OVERHEAD_GIB = 1.2;
/**
 * A cold start: initialisation and CUDA graphs, and reading the checkpoint from a local disk, GB/s. Restarts of vLLM take
 * 30 to 120 s, the less the smaller the model; the two parts are a choice within that range.
 */
const START_SECONDS = 30;
const DISK_GBPS = 2;
/**
 * Bandwidth of PCIe 4.0 x16, a choice on the safe side for newer hosts. With it a change of precision takes 0.5 to 6 s, as
 * sleep and wake of vLLM do (0.1 to 6 s).
 */
const HOST_CHECKPOINTS = { linkGBps: 25, wakeSeconds: 0.5 };
const TRANSFER_SETUP_MS = 1;

/** Less than this for KV serves nobody, GiB a GPU. */
const LEAST_KV_GIB = 1;

/** Facts of measurements that a profile is fitted to. */
export interface CalibrationOptions {
  readonly gpu: Gpu;
  readonly model: ServedModel;
  /** Memory that activations and CUDA graphs took, GiB a GPU. Default 1.2, as with a budget of 2048 tokens. */
  readonly memoryOverheadGiB?: number;
  /** Source of the measurements, as the profile states it. */
  readonly source: string;
  /** The command that repeats the calibration, for the profile. */
  readonly command: string;
}

export interface BlankProfileOptions extends Omit<CalibrationOptions, 'command'> {
  readonly count: number;
  readonly engine: EngineProfile['engine'];
  readonly law: IterationLaw;
  readonly requestOverheadMs: number;
  readonly status: EngineProfile['status'];
}

/** A profile with what follows from GPU and model alone, and one law for 16-bit weights. */
export function blankProfile(options: BlankProfileOptions): EngineProfile {
  const { gpu, model, count, engine, law, memoryOverheadGiB = OVERHEAD_GIB, status, source } = options;
  return {
    name: `${gpu.id}-${model.id}${count === 1 ? '' : `-tp${count}`}`,
    gpu: { name: gpu.name, memoryGiB: gpu.memoryGiB, count, usdPerHour: gpu.usdPerHour },
    model: { name: model.name, ...kvOn(model, count) },
    engine,
    status,
    source,
    fit: null,
    validity: { batch: [1, 1], contextTokens: [1, 1] },
    memory: { utilization: UTILIZATION, overheadGiB: memoryOverheadGiB, blockTokens: BLOCK_TOKENS },
    requestOverheadMs: options.requestOverheadMs,
    reloadSeconds: START_SECONDS + Math.round((2 * model.parameters) / (DISK_GBPS * 1e9)),
    hostCheckpoints: HOST_CHECKPOINTS,
    weights: {
      FP16: {
        weightGiB: round((2 * model.parameters) / 2 ** 30 / count),
        law,
        status,
        source,
        quality: 1,
      },
    },
    speculation: draftOf(gpu, usualDraft(model), count),
    transfer: { gigabytesPerSecond: gpu.linkGBps, setupMs: TRANSFER_SETUP_MS },
  };
}

/** The same with a KV cache of this precision, by name and bytes; the quality of answers is taken to stay. */
export function withKvCache(profile: EngineProfile, kvCache: KvPrecision): EngineProfile {
  if (kvCache === 'FP16') return profile;
  const { name, model } = profile;
  return {
    ...profile,
    name: `${name}-fp8kv`,
    model: {
      ...model,
      kvBytesPerToken: model.kvBytesPerToken / 2,
      kvCache,
      ...(model.kvGroups && {
        kvGroups: { ...model.kvGroups, bytesPerToken: model.kvGroups.bytesPerToken / 2 },
      }),
    },
  };
}

/** Those of some precisions that a GPU multiplies in. */
export function precisionsOn(gpu: Gpu, precisions: readonly WeightPrecision[]): WeightPrecision[] {
  return [...new Set(precisions)].filter(
    (precision) =>
      (precision !== 'FP8' || gpu.fp8Tflops !== null) && (precision !== 'NVFP4' || gpu.fp4Tflops !== null),
  );
}

/** The profile without the weights that leave no room for KV. @throws {ProfileError} when none do. */
export function withRoomForKv(profile: EngineProfile): EngineProfile {
  const { gpu, model, weights } = profile;
  const precisions = Object.keys(weights) as WeightPrecision[];
  const fitting = precisions.filter((precision) => kvMemoryGiB(profile, precision, false) >= LEAST_KV_GIB);
  if (fitting.length === 0) {
    const expected = `weights that fit ${gpu.count} x ${gpu.name}`;
    throw new ProfileError('CALIBRATION_HARDWARE', '', expected, `${model.name} in ${precisions.join(', ')}`);
  }
  return {
    ...profile,
    weights: Object.fromEntries(fitting.map((precision) => [precision, weights[precision]])),
  };
}

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
 * P(at least k draft tokens accepted), k = 1..8, of one MTP layer that drafts them all: 0.82 of DeepSeek-R1 (vLLM, pull request
 * 12755, 81 to 82.3 %), and a mean length of 3.20 with seven drafts of DeepSeek-V3-0324 over MT-bench, HumanEval and GSM8K
 * (nebius/MTP-DeepSeek-V3-0324). In between it falls by one factor, a choice. Nobody published it text by text: all have the same.
 */
const MTP_SURVIVAL = Object.fromEntries(
  Object.keys(SURVIVAL).map((text) => [text, [0.82, 0.529, 0.341, 0.22, 0.142, 0.0915, 0.059, 0.0381]]),
);

/** What a pass of a draft reads and keeps. */
interface DraftSizes {
  readonly method: 'MTP' | 'EAGLE';
  /** Bytes of its layers, and of those that a pass reads together with the output layer. */
  readonly bytes: number;
  readonly readBytes: number;
  /** Parameters that a token passes through, output layer included. */
  readonly activeParameters: number;
  readonly kvBytesPerToken: number;
}

/** A model's own MTP layers, or else an EAGLE head of one decoder layer; each with a projection and beside the model's own output layer. */
function usualDraft(model: ServedModel): DraftSizes {
  const isOwn = model.draftLayers !== undefined;
  const projection = 2 * model.hiddenWidth ** 2;
  const active = parametersPerToken(model) / model.layers + projection;
  const all = isOwn ? layerParameters(model) / model.layers + projection : active;
  // Of 16-bit weights: published FP8 weights have the MTP layer in FP8 too.
  const bytes = 2 * all * (isOwn && model.checkpoint === 'FP8' ? 0.5 : 1);
  return {
    method: isOwn ? 'MTP' : 'EAGLE',
    // More layers than one take turns and as long.
    bytes: (model.draftLayers ?? 1) * bytes,
    readBytes: bytes + 2 * model.embeddingParameters,
    activeParameters: active + model.embeddingParameters,
    kvBytesPerToken: model.kvBytesPerToken / model.layers,
  };
}

/**
 * The profile with the EAGLE head of a `config.json` in 16 bit. EAGLE3 projects three hidden states of the model, takes its embedding
 * beside them in its layer, and has an output layer of its own; EAGLE projects two and takes the model's output layer.
 *
 * @throws {ProfileError} as `modelFromConfig` and `findModel` do.
 */
export function withDraftHead(
  profile: EngineProfile,
  config: string,
  source: string,
  target = findModel(profile.model.name),
): EngineProfile {
  const head = modelFromConfig(config, 'draft', source);
  const { draft_vocab_size: vocabulary, target_hidden_size: targetWidth = target.hiddenWidth } =
    JSON.parse(config);
  const { queryHeads, kvHeads, headSize } = head.shape;
  const width = head.hiddenWidth;
  const isEagle3 = vocabulary !== undefined;
  const layers =
    parametersPerToken(head) +
    (isEagle3
      ? 3 * targetWidth * width + width * headSize * (queryHeads + 2 * kvHeads)
      : 2 * targetWidth * width);
  const output = isEagle3 ? vocabulary * width : target.embeddingParameters;
  const draft: DraftSizes = {
    method: 'EAGLE',
    bytes: 2 * (layers + (isEagle3 ? output : 0)),
    readBytes: 2 * (layers + output),
    activeParameters: layers + output,
    kvBytesPerToken: head.kvBytesPerToken,
  };
  return { ...profile, speculation: draftOf(findGpu(profile.gpu.name), draft, profile.gpu.count) };
}

/** Its time is that measured for EAGLE with Llama-3.1-8B on H100, scaled by bytes read and memory bandwidth; an MTP layer reads all its experts. */
function draftOf(gpu: Gpu, draft: DraftSizes, count: number): EngineProfile['speculation'] {
  const isOwn = draft.method === 'MTP';
  const measuredBytes = 2 * (218e6 + 2 * MEASURED_HIDDEN ** 2 + 128_256 * MEASURED_HIDDEN);
  const slower = H100_MEMORY_GBPS / gpu.memoryGBps / count;
  const measuredKvBytes = 131_072 / MEASURED_LAYERS;
  return {
    method: draft.method,
    draftGiB: round(draft.bytes / 2 ** 30 / count),
    draftBaseUs: round(H100_PASS_US * slower * (draft.readBytes / measuredBytes)),
    draftPerTokenUs: round(
      (2 * draft.activeParameters) / (gpu.bf16Tflops * 1e6 * COMPUTE_EFFICIENCY * count),
    ),
    draftPerContextTokenNs: round(
      H100_PER_CONTEXT_TOKEN_NS * slower * (draft.kvBytesPerToken / measuredKvBytes),
    ),
    survival: isOwn ? MTP_SURVIVAL : SURVIVAL,
    source: `acceptance: ${
      isOwn
        ? 'DeepSeek-R1 and V3, first position and mean length'
        : 'SpecDecode-Bench, EAGLE, Llama-3.1-8B-Instruct'
    }; draft time: vLLM V1 on H100, scaled by memory bandwidth`,
  };
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
