import type { WeightPrecision } from '@servegym/simulator';
import { CalibrationError } from '../schema/calibration-error.ts';
import { FieldReader } from '../schema/field-reader.ts';
import { idOf } from './named.ts';
import { type ServedModel, servedModel } from './served-model.ts';
import type {
  FeedForward,
  LatentAttention,
  LayerGroup,
  LinearAttention,
  TransformerShape,
} from './transformer-shape.ts';

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

const GEMMA_3_DEFAULTS = {
  vocab_size: 262_208,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  head_dim: 256,
  max_position_embeddings: 131_072,
};

const QWEN_LINEAR: Family = { qkNorm: true, outputGate: true, supports: ['linear_num_value_heads'] };

/** By `model_type`, that of `text_config` where there is one. */
const FAMILIES: Readonly<Record<string, Family>> = {
  llama: {},
  llama4_text: { qkNorm: true, fullEvery: 4 },
  mistral: { window: 4096 },
  mixtral: {},
  qwen2: {},
  qwen3: { qkNorm: true },
  qwen3_moe: { qkNorm: true },
  qwen3_vl_text: { qkNorm: true },
  qwen3_vl_moe_text: { qkNorm: true },
  qwen3_next: QWEN_LINEAR,
  qwen3_5_text: QWEN_LINEAR,
  qwen3_5_moe_text: QWEN_LINEAR,
  gpt_oss: { fullEvery: 2 },
  deepseek_v2: {},
  deepseek_v3: {},
  deepseek_v32: { supports: ['index_topk'] },
  glm_moe_dsa: { supports: ['index_topk'] },
  kimi_k2: {},
  glm4_moe: {},
  minimax_m2: { qkNorm: true, qkNormAcross: true },
  gemma2: { tiedEmbeddings: true, fullEvery: 2, defaults: { head_dim: 256 } },
  gemma3_text: { qkNorm: true, tiedEmbeddings: true, fullEvery: 6, defaults: GEMMA_3_DEFAULTS },
  phi3: {},
};

/** Fields of parts of a model that nothing here computes, with the name of the part. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  index_topk: 'sparse attention',
  linear_num_value_heads: 'linear attention',
  linear_attn_config: 'linear attention',
  ssm_state_size: 'state-space layers',
  mamba_d_state: 'state-space layers',
  hybrid_override_pattern: 'state-space layers',
  cross_attention_layers: 'cross attention',
  block_configs: 'layers of different widths',
};

const LARGEST = 2 ** 24;

/**
 * Model of a Hugging Face `config.json`. Layers for the prediction of further tokens (MTP) and vision or audio towers
 * are left out.
 *
 * @param name The model's name or Hugging Face id; a profile is named after it.
 * @param source File name for the messages.
 * @throws {ProfileError} naming a field that is missing or wrong.
 * @throws {CalibrationError} naming what is not supported.
 */
export function modelFromConfig(text: string, name: string, source: string): ServedModel {
  const outer = withoutNulls(parsed(text, source));
  const path = isObject(outer.text_config) ? 'text_config' : '';
  const inner = isObject(outer.text_config) ? withoutNulls(outer.text_config) : outer;
  const type = new FieldReader(source, path, inner).text('model_type');
  const family = Object.hasOwn(FAMILIES, type) ? FAMILIES[type] : undefined;
  if (family === undefined) throw unsupported(source, `\`model_type\` ${JSON.stringify(type)}`);
  for (const [field, part] of Object.entries(UNSUPPORTED)) {
    if (Object.hasOwn(inner, field) && !family.supports?.includes(field))
      throw unsupported(source, `${part} (\`${field}\`)`);
  }
  // A vision-language model has some fields beside `text_config`.
  const { tie_word_embeddings, quantization_config } = outer;
  const config = new FieldReader(source, path, {
    ...family.defaults,
    ...(tie_word_embeddings !== undefined && { tie_word_embeddings }),
    ...(quantization_config !== undefined && { quantization_config }),
    ...inner,
  });
  const base = name.split('/').at(-1)!;
  const checkpoint =
    config.optional('quantization_config', (reader) => precisionOf(reader, source)) ?? 'FP16';
  return servedModel({
    id: idOf(base),
    name: base,
    aliases: base === name ? [] : [name],
    shape: readShape(config, family, source),
    contextTokens: config.integer('max_position_embeddings', 1, 2 ** 30),
    checkpoint,
    checkpoints: base === name ? {} : { [checkpoint]: name },
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(text: string, source: string): Record<string, unknown> {
  const got = (what: string) =>
    new CalibrationError(
      'CALIBRATION_HARDWARE',
      `${source}: expected the config.json of a Hugging Face model, got ${what}`,
    );
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw got(error instanceof SyntaxError ? error.message : String(error));
  }
  if (!isObject(value)) throw got(JSON.stringify(value).slice(0, 40));
  return value;
}

/** A field that is null is as one that is absent. */
function withoutNulls(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

function unsupported(source: string, part: string): CalibrationError {
  return new CalibrationError(
    'CALIBRATION_HARDWARE',
    `${source}: expected a model of a supported kind (${Object.keys(FAMILIES).join(', ')}), got ${part}. ` +
      'Measure a server that runs it instead: servegym calibrate --server or --bench with --start.',
  );
}

function readShape(config: FieldReader, family: Family, source: string): TransformerShape {
  const hidden = size(config, 'hidden_size');
  const queryHeads = size(config, 'num_attention_heads');
  const kvHeads = optionalSize(config, 'num_key_value_heads') ?? queryHeads;
  const mla = config.keys.includes('kv_lora_rank') ? readLatentAttention(config) : null;
  const headSize =
    mla === null ? (optionalSize(config, 'head_dim') ?? hidden / queryHeads) : mla.nopeSize + mla.ropeSize;
  if (!Number.isInteger(headSize) || queryHeads % kvHeads !== 0) {
    throw new CalibrationError(
      'CALIBRATION_HARDWARE',
      `${source}: expected heads that divide \`hidden_size\` and one another, got ${hidden}, ${queryHeads} query and ${kvHeads} KV heads`,
    );
  }
  return {
    hidden,
    vocabulary: size(config, 'vocab_size'),
    tiedEmbeddings: config.optionalBoolean('tie_word_embeddings') ?? family.tiedEmbeddings ?? false,
    queryHeads,
    kvHeads,
    headSize,
    qkNorm: config.optionalBoolean('use_qk_norm') ?? family.qkNorm ?? false,
    ...(family.qkNormAcross && { qkNormAcross: true }),
    ...((config.optionalBoolean('attn_output_gate') ?? family.outputGate) && { outputGate: true }),
    mla,
    layers: grouped(readLayers(config, family)),
  };
}

function readLatentAttention(config: FieldReader): LatentAttention {
  return {
    queryRank: optionalSize(config, 'q_lora_rank') ?? null,
    kvRank: size(config, 'kv_lora_rank'),
    nopeSize: size(config, 'qk_nope_head_dim'),
    ropeSize: size(config, 'qk_rope_head_dim'),
    valueSize: size(config, 'v_head_dim'),
    ...(config.keys.includes('index_topk') && {
      indexer: { heads: size(config, 'index_n_heads'), size: size(config, 'index_head_dim') },
    }),
  };
}

type Layer = Omit<LayerGroup, 'count'>;

function readLayers(config: FieldReader, family: Family): Layer[] {
  const count = config.integer('num_hidden_layers', 1, 10_000);
  const windows = readWindows(config, family, count);
  const feedForwards = readFeedForwards(config, count);
  const linear = readLinearAttention(config, count);
  return windows.map((window, i) => ({
    window,
    ...(linear?.isLinear[i] && { linear: linear.attention }),
    feedForward: feedForwards[i],
  }));
}

/** Layers without attention, and their sizes. */
function readLinearAttention(
  config: FieldReader,
  count: number,
): { isLinear: boolean[]; attention: LinearAttention } | null {
  if (!config.keys.includes('linear_num_value_heads')) return null;
  const types = config.optionalTexts('layer_types', count);
  const fullEvery = optionalSize(config, 'full_attention_interval') ?? 4;
  return {
    isLinear: Array.from({ length: count }, (_, i) =>
      types === undefined ? (i + 1) % fullEvery !== 0 : types[i] === 'linear_attention',
    ),
    attention: {
      keyHeads: size(config, 'linear_num_key_heads'),
      valueHeads: size(config, 'linear_num_value_heads'),
      keySize: size(config, 'linear_key_head_dim'),
      valueSize: size(config, 'linear_value_head_dim'),
    },
  };
}

/** Window of each layer, from the most explicit field that there is. */
function readWindows(config: FieldReader, family: Family, count: number): (number | null)[] {
  const window =
    config.optionalBoolean('use_sliding_window') === false
      ? undefined
      : (optionalSize(config, 'sliding_window') ??
        optionalSize(config, 'attention_chunk_size') ??
        family.window);
  const layers = Array.from({ length: count }, (_, i) => i);
  if (window === undefined) return layers.map(() => null);
  const types = config.optionalTexts('layer_types', count);
  if (types !== undefined) return types.map((type) => (type === 'full_attention' ? null : window));
  const first = config.optionalBoolean('use_sliding_window')
    ? config.integer('max_window_layers', 0, count)
    : 0;
  const fullEvery = optionalSize(config, 'sliding_window_pattern') ?? family.fullEvery;
  return layers.map((i) =>
    i < first || (fullEvery !== undefined && (i + 1) % fullEvery === 0) ? null : window,
  );
}

function readFeedForwards(config: FieldReader, count: number): FeedForward[] {
  const experts =
    optionalSize(config, 'num_local_experts') ??
    optionalSize(config, 'n_routed_experts') ??
    optionalSize(config, 'num_experts');
  const expertsOnly = experts === undefined ? undefined : optionalSize(config, 'moe_intermediate_size');
  const inter = optionalSize(config, 'intermediate_size') ?? expertsOnly ?? size(config, 'intermediate_size');
  if (experts === undefined) return Array.from({ length: count }, () => ({ inter }));
  const expertInter = optionalSize(config, 'moe_intermediate_size') ?? inter;
  const isLlama4 = config.keys.includes('interleave_moe_layer_step');
  const mixture: FeedForward = {
    experts,
    perToken: config.integer('num_experts_per_tok', 1, experts),
    inter: expertInter,
    sharedInter: isLlama4
      ? inter
      : (optionalSize(config, 'shared_expert_intermediate_size') ??
        (config.optionalNumber('n_shared_experts', 0, experts) ?? 0) * expertInter),
  };
  const dense: FeedForward = { inter: optionalSize(config, 'intermediate_size_mlp') ?? inter };
  const leading = config.optionalNumber('first_k_dense_replace', 0, count) ?? 0;
  const step =
    optionalSize(config, 'interleave_moe_layer_step') ?? optionalSize(config, 'decoder_sparse_step') ?? 1;
  return Array.from({ length: count }, (_, i) => (i < leading || (i + 1) % step !== 0 ? dense : mixture));
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
function precisionOf(quantization: FieldReader, source: string): WeightPrecision {
  const method = quantization.text('quant_method');
  const format = quantization.keys.includes('format') ? quantization.text('format') : '';
  const algorithm = quantization.keys.includes('quant_algo') ? quantization.text('quant_algo') : '';
  const bits = quantization.optionalNumber('bits', 1, 16) ?? quantization.optionalNumber('w_bit', 1, 16);
  const label = `${method} ${format} ${algorithm}`.toLowerCase();
  if (label.includes('nvfp4')) return 'NVFP4';
  if (label.includes('mxfp4')) return 'MXFP4';
  if (label.includes('fp8') || format === 'float-quantized') return 'FP8';
  if (format === 'int-quantized' || bits === 8) return 'INT8';
  if (format === 'pack-quantized' || bits === 4 || method === 'awq') return 'INT4';
  throw unsupported(source, `weights quantized by ${JSON.stringify(method)}`);
}

function size(config: FieldReader, key: string): number {
  return config.integer(key, 1, LARGEST);
}

function optionalSize(config: FieldReader, key: string): number | undefined {
  return config.keys.includes(key) ? size(config, key) : undefined;
}
