import type { EngineProfile, WeightPrecision } from '@servegym/simulator';
import { z } from 'zod';
import {
  checked,
  numberFrom,
  ProfileError,
  parseJson,
  textLike,
  trueOrFalse,
  wholeNumber,
} from '../schema/read-json.ts';
import { listProfiles } from './catalog.ts';
import modelTypes from './model-families.json' with { type: 'json' };
import models from './models.json' with { type: 'json' };
import { findNamed, idOf } from './named.ts';
import { type ModelDescription, type ServedModel, servedModel } from './served-model.ts';
import type { FeedForward, LayerGroup, SparseAttention, TransformerShape } from './transformer-shape.ts';

/** Common properties of the models of a `model_type` that their `config.json` leaves out. */
interface Family {
  readonly qkNorm?: boolean;
  readonly qkNormAcross?: boolean;
  readonly outputGate?: boolean;
  /** Fields of the list below that are computed for it. */
  readonly supports?: readonly string[];
  readonly tiedEmbeddings?: boolean;
  /** Default of `sliding_window`. */
  readonly window?: number;
  /** One layer in so many sees all tokens; the others see the window. */
  readonly fullEvery?: number;
  /** Default of fields that the config may leave out. */
  readonly defaults?: Readonly<Record<string, number>>;
}

/** By `model_type`, that of `text_config` where there is one. */
const FAMILIES: Readonly<Record<string, Family>> = modelTypes.families;
/** Fields of parts of a model that nothing here computes, with the name of the part. */
const UNSUPPORTED: Readonly<Record<string, string>> = modelTypes.unsupported;

const size = wholeNumber(1, 2 ** 24);

/** The fields of a `config.json` that count. */
const configFile = z
  .object({
    hidden_size: size,
    vocab_size: size,
    max_position_embeddings: wholeNumber(1, 2 ** 30),
    tie_word_embeddings: trueOrFalse().optional(),
    num_attention_heads: size,
    num_key_value_heads: size.optional(),
    head_dim: size.optional(),
    use_qk_norm: trueOrFalse().optional(),
    attn_output_gate: trueOrFalse().optional(),
    num_hidden_layers: wholeNumber(1, 10_000),
    // Layers that predict further tokens.
    num_nextn_predict_layers: wholeNumber(0, 16).optional(),
    mtp_num_hidden_layers: wholeNumber(0, 16).optional(),
    layer_types: z.array(z.string()).optional(),
    // Sliding windows.
    use_sliding_window: trueOrFalse().optional(),
    sliding_window: size.optional(),
    attention_chunk_size: size.optional(),
    sliding_window_pattern: size.optional(),
    max_window_layers: wholeNumber(0, 10_000).optional(),
    // Latent attention, and the indexer of sparse attention.
    q_lora_rank: size.optional(),
    kv_lora_rank: size.optional(),
    qk_nope_head_dim: size.optional(),
    qk_rope_head_dim: size.optional(),
    v_head_dim: size.optional(),
    index_topk: size.optional(),
    index_n_heads: size.optional(),
    index_head_dim: size.optional(),
    mla_use_output_gate: trueOrFalse().optional(),
    // Attention to compressed tokens (DeepSeek-V4): tokens of one entry, by layer; 0: a window alone.
    compress_ratios: z.array(wholeNumber(0, 2 ** 20)).optional(),
    o_lora_rank: size.optional(),
    o_groups: size.optional(),
    hc_mult: size.optional(),
    // Attention to chosen blocks (MiniMax-M3).
    sparse_attention_config: z
      .object({
        sparse_attention_freq: z.array(wholeNumber(0, 1)),
        sparse_num_index_heads: size,
        sparse_index_dim: size,
        sparse_topk_blocks: size,
        sparse_block_size: size,
      })
      .optional(),
    // Linear attention.
    full_attention_interval: size.optional(),
    linear_num_key_heads: size.optional(),
    linear_num_value_heads: size.optional(),
    linear_key_head_dim: size.optional(),
    linear_value_head_dim: size.optional(),
    linear_attn_config: z.object({ kda_layers: z.array(size), num_heads: size, head_dim: size }).optional(),
    // Feed-forward layers and experts.
    intermediate_size: size.optional(),
    intermediate_size_mlp: size.optional(),
    moe_intermediate_size: size.optional(),
    dense_intermediate_size: size.optional(),
    shared_expert_intermediate_size: numberFrom(0, 2 ** 24).optional(),
    routed_expert_hidden_size: size.optional(),
    num_local_experts: size.optional(),
    n_routed_experts: size.optional(),
    num_experts: size.optional(),
    num_experts_per_tok: size.optional(),
    n_shared_experts: numberFrom(0, 10_000).optional(),
    expert_dtype: textLike().optional(),
    moe_layer_freq: z.union([size, z.array(wholeNumber(0, 1))]).optional(),
    first_k_dense_replace: wholeNumber(0, 10_000).optional(),
    interleave_moe_layer_step: size.optional(),
    decoder_sparse_step: size.optional(),
  })
  .superRefine((config, context) => {
    const layers = config.num_hidden_layers;
    const refuse = (field: keyof typeof config, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message });
    const needs = (...names: (keyof typeof config)[]) => {
      for (const name of names) if (config[name] === undefined) refuse(name, 'a whole number from 1');
    };
    const most = (
      field: 'num_experts_per_tok' | 'first_k_dense_replace' | 'max_window_layers',
      limit: number,
    ) => {
      if ((config[field] ?? 0) > limit) refuse(field, `a whole number up to ${limit}`);
    };
    const experts = expertsOf(config);
    if (experts !== undefined) {
      needs('num_experts_per_tok');
      most('num_experts_per_tok', experts);
    }
    if (experts === undefined || config.moe_intermediate_size === undefined) needs('intermediate_size');
    most('first_k_dense_replace', layers);
    most('max_window_layers', layers);
    if (config.use_sliding_window && config.sliding_window && !config.layer_types) needs('max_window_layers');
    if (config.layer_types && config.layer_types.length !== layers) refuse('layer_types', `${layers} texts`);
    if (config.kv_lora_rank) needs('qk_nope_head_dim', 'qk_rope_head_dim', 'v_head_dim');
    if (config.kv_lora_rank && config.index_topk) needs('index_n_heads', 'index_head_dim');
    if (config.compress_ratios) {
      needs('q_lora_rank', 'o_lora_rank', 'o_groups', 'head_dim', 'sliding_window');
      needs('index_topk', 'index_n_heads', 'index_head_dim');
    }
    for (const field of ['compress_ratios', 'moe_layer_freq'] as const) {
      const each = config[field];
      if (Array.isArray(each) && each.length < layers) refuse(field, `${layers} numbers`);
    }
    if (config.linear_num_value_heads)
      needs('linear_num_key_heads', 'linear_key_head_dim', 'linear_value_head_dim');
  });
type Config = z.infer<typeof configFile>;

/** Fields whose name differs between configs, and the name that is read. */
const RENAMED: Readonly<Record<string, keyof Config>> = {
  num_experts_per_token: 'num_experts_per_tok',
  num_shared_experts: 'n_shared_experts',
  share_expert_dim: 'shared_expert_intermediate_size',
  shared_intermediate_size: 'shared_expert_intermediate_size',
};

function expertsOf(config: Pick<Config, 'num_local_experts' | 'n_routed_experts' | 'num_experts'>) {
  return config.num_local_experts ?? config.n_routed_experts ?? config.num_experts;
}

const quantizationFile = z.object({
  quant_method: textLike(),
  format: textLike().default(''),
  quant_algo: textLike().default(''),
  bits: numberFrom(1, 16).optional(),
  w_bit: numberFrom(1, 16).optional(),
  quantized_layers: z.record(z.string(), z.object({ quant_algo: textLike() })).optional(),
  group_size: z.number().optional(),
  weight_block_size: z.array(z.number()).optional(),
  config_groups: z.record(z.string(), z.any()).optional(),
  ignore: z.array(z.string()).optional(),
});
type Quantization = z.infer<typeof quantizationFile>;

/** Checkpoints of the same shape under another name. Their context is `max_position_embeddings` of their `config.json`. */
type Variant = Pick<ModelDescription, 'name' | 'aliases' | 'contextTokens' | 'checkpoints' | 'draft'>;

/** A row of `models.json`: a model and what counts of its published `config.json`. */
interface KnownModel
  extends Omit<ModelDescription, 'shape' | 'contextTokens' | 'draftLayers' | 'checkpoint'>,
    Partial<Pick<ModelDescription, 'checkpoint'>> {
  readonly config: Readonly<Record<string, unknown>>;
  readonly variants?: readonly Variant[];
}

const ROWS = models as readonly KnownModel[];

/** Models known by name. A test checks their configs by the schema; every command would start later for it. */
export const MODELS: readonly ServedModel[] = ROWS.map(({ config, variants: _, ...model }) => {
  const family = FAMILIES[config.model_type as string] ?? {};
  const described = description(completed(config, family) as Config, family, model.id);
  return servedModel({ checkpoint: 'FP16', ...model, ...described });
});

/** Each model behind its variants, whose aliases are among its own. */
const CHECKPOINTS: readonly ServedModel[] = MODELS.flatMap((model, row) => [
  ...(ROWS[row].variants ?? []).map((variant) => ({
    ...model,
    ...{ id: idOf(variant.name), draft: undefined, shapeOf: model.name },
    ...variant,
  })),
  model,
]);

/** Endings of the names of quantized checkpoints. */
const QUANTIZED =
  /[-_.](fp8([-_]dynamic)?|awq([-_]int4)?|gptq([-_]int4)?|int4|int8|w8a8|w4a16|quantized\.w8a8|quantized\.w4a16|nvfp4)$/i;

/** The profiles of a model, under its name. Not of the catalog, whose place pages fill with one of their own. */
export function profilesOf({ name, shapeOf = name }: Pick<ServedModel, 'name' | 'shapeOf'>): EngineProfile[] {
  return listProfiles()
    .filter(({ model }) => model.name === shapeOf)
    .map((profile) => (shapeOf === name ? profile : { ...profile, model: { ...profile.model, name } }));
}

/**
 * Model and precision of a checkpoint, whoever has published it, or of a name of the model; `undefined` where it is not known.
 * A variant, such as Llama-3.1-8B, has its own name, context and checkpoints, and the shape and profiles of `shapeOf`.
 */
export function knownCheckpoint(
  checkpoint: string,
): { readonly model: ServedModel; readonly precision: WeightPrecision } | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/^.*\//, '');
  const wanted = plain(checkpoint);
  for (const model of CHECKPOINTS) {
    for (const [precision, id] of Object.entries(model.checkpoints)) {
      if (plain(id) === wanted) return { model, precision: precision as WeightPrecision };
    }
  }
  const bare = wanted.replace(QUANTIZED, '');
  const model = CHECKPOINTS.find(({ id, name, aliases, checkpoints }) =>
    [id, name, ...aliases, ...Object.values(checkpoints)].some((each) => plain(each) === bare),
  );
  const ending = QUANTIZED.exec(wanted)?.[1] ?? '';
  return model && { model, precision: precisionAtEnd(ending) ?? model.checkpoint };
}

function precisionAtEnd(ending: string): WeightPrecision | undefined {
  if (ending.startsWith('fp8')) return 'FP8';
  if (ending === 'nvfp4') return 'NVFP4';
  if (/w8a8|int8/.test(ending)) return 'INT8';
  return ending === '' ? undefined : 'INT4';
}

/** The model that measurements or people call by this name. @throws {ProfileError} listing those there are. */
export function findModel(name: string): ServedModel {
  return findNamed(MODELS, name, 'model');
}

/**
 * Model of a Hugging Face `config.json`. Vision and audio towers are left out. Layers that predict further tokens (MTP) draft
 * where the engine speculates, and are no part of it else.
 *
 * @param name The model's name or Hugging Face id; a profile is named after it.
 * @param source File name for the messages.
 * @throws {ProfileError} naming a field that is missing or wrong, or what is not supported.
 */
export function modelFromConfig(text: string, name: string, source: string): ServedModel {
  const expected = 'the config.json of a Hugging Face model';
  const file = parseJson(text, source, 'CALIBRATION_HARDWARE', expected);
  if (!isObject(file))
    throw new ProfileError('CALIBRATION_HARDWARE', source, expected, JSON.stringify(file).slice(0, 40));
  const outer = withoutNulls(file);
  const inner = isObject(outer.text_config) ? withoutNulls(outer.text_config) : outer;
  // A vision-language model has some fields beside `text_config`.
  const { tie_word_embeddings = undefined, quantization_config = undefined } = { ...outer, ...inner };
  const base = name.split('/').at(-1)!;
  const at = ['quantization_config'];
  const read = checked(quantizationFile.optional(), quantization_config, source, { at });
  const whole = read === undefined ? 'FP16' : precisionOf(read, source);
  const checkpoint = inner.expert_dtype === 'fp4' ? 'MXFP4' : whole;
  const given = { model_type: outer.model_type, ...inner, tie_word_embeddings };
  return servedModel({
    id: idOf(base),
    name: base,
    aliases: base === name ? [] : [name],
    ...describedBy(given, source, inner === outer ? [] : ['text_config']),
    checkpoint,
    ...(checkpoint === 'INT4' && { quantized: quantizedParts(read!) }),
    ...(checkpoint === 'FP8' && hasBlocks(read!) && { fp8Blocks: true }),
    checkpoints: base === name ? {} : { [checkpoint]: name },
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A field that is null is as one that is absent. */
function withoutNulls(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

function unsupported(source: string, part: string): ProfileError {
  const known = 'a model whose layers are known (docs/engine-profiles.md#models-and-gpus)';
  const instead =
    'Measure a server that runs it instead: servegym profile make URL, or results of a load generator with --start.';
  return new ProfileError('CALIBRATION_HARDWARE', source, known, `${part}. ${instead}`);
}

/** Fields of a config under the names that are read, with the defaults of its family. */
function completed(given: Readonly<Record<string, unknown>>, { defaults }: Family): Record<string, unknown> {
  const named = Object.entries(given).map(([field, value]) => [RENAMED[field] ?? field, value]);
  return { ...defaults, ...Object.fromEntries(named) };
}

/** Whether a field gives a size or a kind of layers that is not read here. */
function isStrange(field: string, value: unknown): boolean {
  if (Object.hasOwn(configFile.shape, RENAMED[field] ?? field) || modelTypes.harmless.includes(field))
    return false;
  const says =
    typeof value === 'object' ? Object.keys(value!).length > 0 : value === true || Number(value) > 0;
  return says && new RegExp(modelTypes.structural).test(field);
}

/** What a config says of the model, without its weights. @param at Path of the config in its file. */
function describedBy(given: Readonly<Record<string, unknown>>, source: string, at: readonly string[] = []) {
  const { model_type: type } = checked(z.object({ model_type: textLike() }), given, source, { at });
  const isKnown = Object.hasOwn(FAMILIES, type);
  const family = isKnown ? FAMILIES[type] : {};
  const strange = isKnown ? [] : Object.keys(given).filter((field) => isStrange(field, given[field]));
  if (strange.length > 0) {
    const fields = strange.map((field) => `\`${field}\``).join(', ');
    throw unsupported(source, `\`model_type\` ${JSON.stringify(type)} with ${fields}`);
  }
  // An indexer chooses among latent or compressed tokens.
  const isIndexed = Object.hasOwn(given, 'kv_lora_rank') || Object.hasOwn(given, 'compress_ratios');
  for (const [field, part] of Object.entries(UNSUPPORTED)) {
    const isComputed = field === 'index_topk' ? isIndexed : family.supports?.includes(field);
    if (Object.hasOwn(given, field) && !isComputed) throw unsupported(source, `${part} (\`${field}\`)`);
  }
  return description(checked(configFile, completed(given, family), source, { at }), family, source);
}

function description(config: Config, family: Family, source: string) {
  const draftLayers = config.num_nextn_predict_layers ?? config.mtp_num_hidden_layers ?? 0;
  return {
    shape: shapeOf(config, family, source),
    contextTokens: config.max_position_embeddings,
    ...(draftLayers > 0 && { draftLayers }),
  };
}

function shapeOf(config: Config, family: Family, source: string): TransformerShape {
  const { hidden_size: hidden, num_attention_heads: queryHeads } = config;
  const kvHeads = config.num_key_value_heads ?? queryHeads;
  const mla = latentAttention(config);
  const headSize = mla === null ? (config.head_dim ?? hidden / queryHeads) : mla.nopeSize + mla.ropeSize;
  if (!Number.isInteger(headSize) || queryHeads % kvHeads !== 0) {
    const expected = 'heads that divide `hidden_size` and one another';
    const got = `${hidden}, ${queryHeads} query and ${kvHeads} KV heads`;
    throw new ProfileError('CALIBRATION_HARDWARE', source, expected, got);
  }
  return {
    hidden,
    vocabulary: config.vocab_size,
    tiedEmbeddings: config.tie_word_embeddings ?? family.tiedEmbeddings ?? false,
    queryHeads,
    kvHeads,
    headSize,
    qkNorm: config.use_qk_norm ?? family.qkNorm ?? false,
    ...(family.qkNormAcross && { qkNormAcross: true }),
    ...(config.sliding_window === undefined && config.attention_chunk_size && { chunkedAttention: true }),
    ...((config.attn_output_gate ?? config.mla_use_output_gate ?? family.outputGate) && { outputGate: true }),
    ...(config.hc_mult && { hyperConnections: true }),
    mla,
    layers: grouped(layersOf(config, family)),
  };
}

function latentAttention(config: Config): TransformerShape['mla'] {
  if (config.kv_lora_rank === undefined) return null;
  return {
    queryRank: config.q_lora_rank ?? null,
    kvRank: config.kv_lora_rank,
    nopeSize: config.qk_nope_head_dim!,
    ropeSize: config.qk_rope_head_dim!,
    valueSize: config.v_head_dim!,
    ...(config.index_topk && {
      indexer: { heads: config.index_n_heads!, size: config.index_head_dim! },
    }),
  };
}

type Layer = Omit<LayerGroup, 'count'>;

function layersOf(config: Config, family: Family): Layer[] {
  const windows = windowsOf(config, family);
  const feedForwards = feedForwardsOf(config);
  const linear = linearAttention(config);
  return windows.map((window, i) => {
    const sparse = compressedAttention(config, i) ?? blockAttention(config, i);
    return {
      window,
      ...(linear?.isLinear(i) && { linear: linear.attention }),
      ...(sparse && { sparse }),
      feedForward: feedForwards[i],
    };
  });
}

/** Tokens of a compressed entry up to which an indexer chooses among entries. */
const INDEXED_RATIO = 4;
/** Context of which queries are taken to see every compressed entry, tokens: a choice, as for windows. */
const LONG_CONTEXT = 4096;

/** Attention of DeepSeek-V4: a window, and entries that stand for several tokens each. */
function compressedAttention(config: Config, layer: number): SparseAttention | undefined {
  const { hidden_size: hidden, num_attention_heads: heads, compress_ratios: ratios } = config;
  if (ratios === undefined) return undefined;
  const [size, queryRank, outRank] = [config.head_dim!, config.q_lora_rank!, config.o_lora_rank!];
  const [indexHeads, indexSize] = [config.index_n_heads!, config.index_head_dim!];
  const window = config.sliding_window!;
  const ratio = ratios[layer];
  const isIndexed = ratio > 0 && ratio <= INDEXED_RATIO;
  // Indexed entries overlap, and have both halves of a key and of its score.
  const compressor = ratio === 0 ? 0 : 2 * (isIndexed ? 2 : 1) * size * hidden;
  const indexer = isIndexed
    ? queryRank * indexHeads * indexSize + hidden * indexHeads + 4 * indexSize * hidden
    : 0;
  const projections =
    hidden * (queryRank + size) + heads * size * (queryRank + outRank) + config.o_groups! * outRank * hidden;
  const entries = ratio === 0 ? 0 : LONG_CONTEXT / ratio;
  return {
    table: isIndexed ? 'dsv4_csa' : 'dsv4_hca',
    parameters: projections + compressor + indexer,
    kvNumbers: ratio === 0 ? 0 : (size + (isIndexed ? indexSize / 2 : 0)) / ratio,
    windowNumbers: window * size,
    keys: window + (isIndexed ? Math.min(config.index_topk!, entries) : entries),
  };
}

/** Attention of MiniMax-M3: grouped queries over the blocks of tokens that an indexer chooses. */
function blockAttention(config: Config, layer: number): SparseAttention | undefined {
  const { hidden_size: hidden, num_attention_heads: heads, sparse_attention_config: sparse } = config;
  if (sparse === undefined || sparse.sparse_attention_freq[layer] !== 1) return undefined;
  const { num_key_value_heads: kvHeads = heads, head_dim: size = hidden / heads } = config;
  const index = sparse.sparse_index_dim;
  return {
    table: 'msa',
    parameters: hidden * (2 * size * (heads + kvHeads) + index * (sparse.sparse_num_index_heads + 1)),
    kvNumbers: 2 * kvHeads * size + index,
    windowNumbers: 0,
    keys: sparse.sparse_topk_blocks * sparse.sparse_block_size,
  };
}

/** Layers without attention, and their sizes. */
function linearAttention(config: Config) {
  const { layer_types: types, full_attention_interval: fullEvery = 4, linear_attn_config: kimi } = config;
  if (kimi !== undefined) {
    const { num_heads: heads, head_dim: headSize } = kimi;
    return {
      isLinear: (layer: number) => kimi.kda_layers.includes(layer + 1),
      attention: {
        ...{ keyHeads: heads, valueHeads: heads, keySize: headSize, valueSize: headSize },
        decayRank: headSize,
      },
    };
  }
  if (config.linear_num_value_heads === undefined) return null;
  return {
    isLinear: (layer: number) =>
      types === undefined ? (layer + 1) % fullEvery !== 0 : types[layer] === 'linear_attention',
    attention: {
      keyHeads: config.linear_num_key_heads!,
      valueHeads: config.linear_num_value_heads,
      keySize: config.linear_key_head_dim!,
      valueSize: config.linear_value_head_dim!,
    },
  };
}

/** Window of each layer, from the most explicit field that there is. */
function windowsOf(config: Config, family: Family): (number | null)[] {
  const window =
    config.use_sliding_window === false
      ? undefined
      : (config.sliding_window ?? config.attention_chunk_size ?? family.window);
  const layers = Array.from({ length: config.num_hidden_layers }, (_, i) => i);
  if (window === undefined || config.compress_ratios !== undefined) return layers.map(() => null);
  if (config.layer_types !== undefined)
    return config.layer_types.map((type) => (type === 'full_attention' ? null : window));
  const first = config.use_sliding_window ? (config.max_window_layers ?? 0) : 0;
  const fullEvery = config.sliding_window_pattern ?? family.fullEvery;
  return layers.map((i) =>
    i < first || (fullEvery !== undefined && (i + 1) % fullEvery === 0) ? null : window,
  );
}

function feedForwardsOf(config: Config): FeedForward[] {
  const layers = Array.from({ length: config.num_hidden_layers }, (_, i) => i);
  const experts = expertsOf(config);
  const inter = (config.intermediate_size ?? config.moe_intermediate_size)!;
  if (experts === undefined) return layers.map(() => ({ inter }));
  const expertInter = config.moe_intermediate_size ?? inter;
  const isLlama4 = config.interleave_moe_layer_step !== undefined;
  const mixture: FeedForward = {
    experts,
    perToken: config.num_experts_per_tok!,
    inter: expertInter,
    ...(config.routed_expert_hidden_size && { width: config.routed_expert_hidden_size }),
    sharedInter: isLlama4
      ? inter
      : (config.shared_expert_intermediate_size ?? (config.n_shared_experts ?? 0) * expertInter),
  };
  const dense: FeedForward = {
    inter: config.intermediate_size_mlp ?? config.dense_intermediate_size ?? inter,
  };
  const { first_k_dense_replace: leading = 0, moe_layer_freq: frequency } = config;
  const step = config.interleave_moe_layer_step ?? config.decoder_sparse_step ?? 1;
  const isDense = (i: number) =>
    i < leading || (i + 1) % step !== 0 || (Array.isArray(frequency) && frequency[i] === 0);
  return layers.map((i) => (isDense(i) ? dense : mixture));
}

function grouped(layers: readonly Layer[]): LayerGroup[] {
  const groups = new Map<string, LayerGroup>();
  for (const layer of layers) {
    const key = JSON.stringify(layer);
    groups.set(key, { ...layer, count: (groups.get(key)?.count ?? 0) + 1 });
  }
  return [...groups.values()];
}

/** Precision of the weights beside a config. */
function precisionOf(read: Quantization, source: string): WeightPrecision {
  const { quant_method: method, format, quant_algo: algorithm } = read;
  const bits = read.bits ?? read.w_bit;
  // Mixed precisions count as the one with the fewest bits.
  const byLayer = Object.values(read.quantized_layers ?? {}).map(({ quant_algo: own }) => own);
  const mixed = byLayer.find((own) => /nvfp4|mxfp4/i.test(own)) ?? byLayer[0] ?? '';
  const label = `${method} ${format} ${algorithm} ${mixed}`.toLowerCase();
  if (label.includes('nvfp4')) return 'NVFP4';
  if (label.includes('mxfp4')) return 'MXFP4';
  if (label.includes('fp8') || format === 'float-quantized') return 'FP8';
  if (format === 'int-quantized' || bits === 8) return 'INT8';
  if (format === 'pack-quantized' || bits === 4 || method === 'awq') return 'INT4';
  throw unsupported(source, `weights quantized by ${JSON.stringify(method)}`);
}

/** Whether weights have a scale for each block. */
function hasBlocks({ weight_block_size, config_groups = {} }: Quantization): boolean {
  const [group] = Object.values(config_groups);
  return weight_block_size !== undefined || group?.weights?.strategy === 'block';
}

/** What INT4 weights take: 4 bits and a 16-bit scale for each group, in the experts alone where attention is ignored. */
function quantizedParts(read: Quantization): ServedModel['quantized'] {
  const group = Number(read.group_size ?? Object.values(read.config_groups ?? {})[0]?.weights?.group_size);
  return {
    ...(group > 0 && { bytes: (4 + 16 / group) / 16 }),
    ...(read.ignore?.some((layers) => /attn|attention/.test(layers)) && { parts: 'experts' }),
  };
}
