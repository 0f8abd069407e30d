import type { WeightPrecision } from '@servegym/simulator';
import type { Named } from './named.ts';
import {
  countParameters,
  isMixture,
  kvBytesOfSequence,
  kvGroups,
  kvShards,
  layerCount,
  layersByWindow,
  type TransformerShape,
} from './transformer-shape.ts';

/** Bytes of a 16-bit number. */
const BYTES = 2;
/**
 * Context for which the memory and the attention of layers with a sliding window count, tokens: an engine profile knows
 * one number of KV bytes for each token, whatever the context. A choice, near the contexts of served loads.
 */
const WINDOW_CONTEXT = 4096;

/** A transformer as it is published. */
export interface ModelDescription extends Named {
  readonly shape: TransformerShape;
  /**
   * Longest context: `max_position_embeddings`. Where the models of a name differ, that of the first, or of the
   * instruction-tuned Qwen2.5.
   */
  readonly contextTokens: number;
  /** Layers that predict further tokens (MTP). Default none. */
  readonly draftLayers?: number;
  /** Precision of the published weights. */
  readonly checkpoint: WeightPrecision;
  /** Parts of the published weights that are quantized, and their bytes against 16 bit, where the checkpoint says. */
  readonly quantized?: { readonly parts?: 'experts'; readonly bytes?: number };
  /** Whether the FP8 checkpoint has one scale for each block of 128 x 128 weights, as `weight_block_size` says; else for larger parts. */
  readonly fp8Blocks?: boolean;
  /** Hugging Face ids of published weights, by precision: the instruction-tuned model where there is one. */
  readonly checkpoints: Readonly<Partial<Record<WeightPrecision, string>>>;
  /** Hugging Face id of a public EAGLE head for it. */
  readonly draft?: string;
  /** Parameters as the model card rounds them, which shipped profiles were made with. Default: counted. */
  readonly parameters?: number;
  readonly activeParameters?: number;
}

/** A transformer, as far as the speed of serving depends on it. Its id is the end of a profile's name. */
export interface ServedModel extends ModelDescription {
  /** All parameters. */
  readonly parameters: number;
  /** Parameters that one token passes through; fewer than all in a mixture of experts. */
  readonly activeParameters: number;
  /** The routed experts of each layer of a mixture; `null` for a dense model. */
  readonly experts: { readonly count: number; readonly perToken: number } | null;
  /** Parameters of the token embedding. An output layer of its own has as many. */
  readonly embeddingParameters: number;
  readonly layers: number;
  /** Whether each layer normalises queries and keys. */
  readonly qkNorm: boolean;
  readonly queryHeads: number;
  /** Query heads x head size: the width of attention, of layers with a sliding window the part that they see. */
  readonly attentionWidth: number;
  readonly hiddenWidth: number;
  /** KV cache of one token in 16 bit, bytes; with sliding windows the mean over a context of 4,096 tokens. */
  readonly kvBytesPerToken: number;
  /** Of a variant: name of the model whose shape and profiles it has. */
  readonly shapeOf?: string;
}

export function servedModel(description: ModelDescription): ServedModel {
  const { shape } = description;
  const counts = countParameters(shape);
  const mixture = shape.layers.map(({ feedForward }) => feedForward).find(isMixture);
  const { parameters = counts.total } = description;
  const active = mixture === undefined ? parameters : Math.round(counts.active);
  return {
    ...description,
    parameters,
    activeParameters: description.activeParameters ?? active,
    experts: mixture === undefined ? null : { count: mixture.experts, perToken: mixture.perToken },
    embeddingParameters: counts.embedding,
    layers: layerCount(shape),
    qkNorm: shape.qkNorm,
    queryHeads: shape.queryHeads,
    attentionWidth: attentionWidth(shape),
    hiddenWidth: shape.hidden,
    kvBytesPerToken: Math.round(kvBytesOfSequence(shape, WINDOW_CONTEXT, BYTES) / WINDOW_CONTEXT),
  };
}

function attentionWidth(shape: TransformerShape): number {
  const { queryHeads, headSize, mla } = shape;
  const size = mla === null ? headSize : (mla.nopeSize + mla.ropeSize + mla.valueSize) / 2;
  let seen = 0;
  const sparse = shape.layers.flatMap(({ count, sparse: own }) => (own ? [[own.keys, count] as const] : []));
  for (const [window, count] of [...layersByWindow(shape), ...sparse]) {
    const share = Math.min(1, (window ?? WINDOW_CONTEXT) / WINDOW_CONTEXT);
    // Pairs of query and key in a band below the diagonal, of all below it.
    seen += count * (2 * share - share ** 2);
  }
  return (queryHeads * size * seen) / layerCount(shape);
}

/** KV cache of a model on `count` GPUs together, as profiles have it: more GPUs than there are KV heads hold copies. */
export function kvOn(
  { kvBytesPerToken, shape }: Pick<ServedModel, 'kvBytesPerToken' | 'shape'>,
  count: number,
) {
  const copies = Math.max(1, count / kvShards(shape));
  const groups = kvGroups(shape, BYTES);
  return {
    kvBytesPerToken: kvBytesPerToken * copies,
    ...(groups && { kvGroups: { ...groups, bytesPerToken: groups.bytesPerToken * copies } }),
  };
}

/** Parameters that a full batch streams through the memory system: all but a token embedding's own table. */
export function streamedParameters(model: ServedModel): number {
  return model.parameters - (tables(model) - 1) * model.embeddingParameters;
}

/** Parameters of all routed experts; 0 for a dense model. */
export function expertParameters({ parameters, activeParameters, experts }: ServedModel): number {
  return experts === null ? 0 : (parameters - activeParameters) / (1 - experts.perToken / experts.count);
}

/** Parameters that every token is multiplied with; the output layer only sees the last token of a sequence. */
export function parametersPerToken(model: ServedModel): number {
  return model.activeParameters - tables(model) * model.embeddingParameters;
}

/** Parameters of the layers, which quantization makes smaller; embedding and output layer stay in 16 bit. */
export function layerParameters(model: ServedModel): number {
  return model.parameters - tables(model) * model.embeddingParameters;
}

/** Tables as large as the vocabulary: the embedding, and an output layer of its own. */
function tables({ shape }: ServedModel): number {
  return shape.tiedEmbeddings ? 1 : 2;
}
