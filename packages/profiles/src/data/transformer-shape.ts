import type { EngineProfile } from '@servegym/simulator';

/** Sizes of a decoder-only transformer: all that the time and memory of serving it depend on. */
export interface TransformerShape {
  readonly hidden: number;
  readonly vocabulary: number;
  /** Whether the output layer is the table of the token embedding. */
  readonly tiedEmbeddings: boolean;
  readonly queryHeads: number;
  readonly kvHeads: number;
  /** Size of a head's query and key. */
  readonly headSize: number;
  /** Whether each layer normalises queries and keys. */
  readonly qkNorm: boolean;
  /** Whether that norm is one over all heads instead of one for each. */
  readonly qkNormAcross?: boolean;
  /** Whether layers with a window attend within chunks of its length. Default false. */
  readonly chunkedAttention?: boolean;
  /** Whether a gate as wide as the queries multiplies what attention returns. */
  readonly outputGate?: boolean;
  /** Whether each layer mixes several residual streams before and behind (mHC). */
  readonly hyperConnections?: boolean;
  /** `null`: queries, keys and values of `headSize` for each head. */
  readonly mla: LatentAttention | null;
  /** Groups of equal layers; their order does not matter. */
  readonly layers: readonly LayerGroup[];
}

/** Multi-head latent attention: all heads share one compressed key and value per token. */
interface LatentAttention {
  /** Rank of the compressed query; `null`: not compressed. */
  readonly queryRank: number | null;
  readonly kvRank: number;
  /** Size of a head's query and key without and with rotary embedding, and of its value. */
  readonly nopeSize: number;
  readonly ropeSize: number;
  readonly valueSize: number;
  /** Heads that choose the tokens that a query attends to, and their size; `null`: it attends to all. */
  readonly indexer?: { readonly heads: number; readonly size: number } | null;
}

/** Gated delta rule: a state of fixed size for each sequence instead of keys and values for each token. */
export interface LinearAttention {
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keySize: number;
  readonly valueSize: number;
  /** Rank of a decay for each number of a key (Kimi's delta attention). Default: one decay for each head. */
  readonly decayRank?: number;
}

/** Attention to chosen or compressed tokens, as a kernel table measures it: with its projections. */
export interface SparseAttention {
  readonly table: 'msa' | 'dsv4_csa' | 'dsv4_hca';
  /** Parameters of one layer. */
  readonly parameters: number;
  /** Numbers in the KV cache, for each token of the context. */
  readonly kvNumbers: number;
  /** Numbers beside them, for each sequence: the KV of a window. */
  readonly windowNumbers: number;
  /** Keys that a query attends to in a long context. */
  readonly keys: number;
}

export interface LayerGroup {
  readonly count: number;
  /** Last tokens that attention sees; `null`: all. */
  readonly window: number | null;
  /** Of layers without attention. */
  readonly linear?: LinearAttention;
  readonly sparse?: SparseAttention;
  readonly feedForward: FeedForward;
}

/** Gated feed-forward layer of intermediate size `inter`, or a mixture of such experts with a shared one beside them. */
export type FeedForward = { readonly inter: number } | Mixture;

export interface Mixture {
  readonly experts: number;
  /** Experts that one token is routed to. */
  readonly perToken: number;
  /** Intermediate size of one expert. */
  readonly inter: number;
  /** Width of what experts take and return, behind a projection of their own. Default: that of the model. */
  readonly width?: number;
  /** Intermediate size of all shared experts together; 0: none. */
  readonly sharedInter: number;
}

export function isMixture(feedForward: FeedForward): feedForward is Mixture {
  return 'experts' in feedForward;
}

export function layerCount({ layers }: TransformerShape): number {
  return layers.reduce((sum, { count }) => sum + count, 0);
}

/** Gate, up and down projection. */
const GATED = 3;

/** Parameters of the matrices, by part. Vectors (norms, biases) are left out: less than 0.05 % of any model. */
export function countParameters(shape: TransformerShape) {
  const { hidden, vocabulary, layers } = shape;
  const embedding = hidden * vocabulary;
  const outputLayer = shape.tiedEmbeddings ? 0 : embedding;
  const attention = layers.reduce(
    (sum, { count, linear, sparse }) =>
      sum +
      count *
        (sparse?.parameters ?? (linear ? linearParameters(hidden, linear) : attentionParameters(shape))),
    0,
  );
  let [feedForward, router, experts, unused] = [0, 0, 0, 0];
  for (const { count, feedForward: layer } of layers) {
    const widths = GATED * hidden * count;
    if (!isMixture(layer)) {
      feedForward += widths * layer.inter;
      continue;
    }
    const { width } = layer;
    const ofExpert = ((widths * layer.inter) / hidden) * (width ?? hidden);
    feedForward += widths * layer.sharedInter + (width === undefined ? 0 : 2 * hidden * width * count);
    router += count * hidden * layer.experts;
    experts += ofExpert * layer.experts;
    unused += ofExpert * (layer.experts - layer.perToken);
  }
  const total = embedding + outputLayer + attention + feedForward + router + experts;
  return {
    embedding,
    /** 0 with tied embeddings. */
    outputLayer,
    attention,
    /** Feed-forward layers that every token passes through, shared experts among them. */
    feedForward,
    router,
    /** All routed experts. */
    experts,
    total,
    /** Parameters that one token passes through, the embedding among them. */
    active: total - unused,
  };
}

/** Width of the projection of queries, keys and values, of the gate behind it, and of its gates: two by head, or one and a decay. */
export function linearWidth({
  keyHeads,
  valueHeads,
  keySize,
  valueSize,
  decayRank,
}: LinearAttention): number {
  const gates = decayRank === undefined ? 2 * valueHeads : valueHeads + decayRank;
  return 2 * keyHeads * keySize + 2 * valueHeads * valueSize + gates;
}

function linearParameters(hidden: number, linear: LinearAttention): number {
  const { keyHeads, keySize, valueHeads, valueSize, decayRank = 0 } = linear;
  return hidden * (linearWidth(linear) + valueHeads * valueSize) + decayRank * keyHeads * keySize;
}

/** Parameters of one layer's projections. */
function attentionParameters(shape: TransformerShape): number {
  const { hidden, queryHeads, kvHeads, headSize, mla, outputGate } = shape;
  if (mla === null) return hidden * headSize * ((outputGate ? 3 : 2) * queryHeads + 2 * kvHeads);
  const { queryRank, kvRank, nopeSize, ropeSize, valueSize, indexer } = mla;
  const ofIndexer = indexer
    ? (queryRank ?? hidden) * indexer.heads * indexer.size + hidden * (indexer.size + indexer.heads)
    : 0;
  const queries = queryHeads * (nopeSize + ropeSize);
  return (
    (queryRank === null ? hidden * queries : queryRank * (hidden + queries)) +
    hidden * (kvRank + ropeSize) +
    kvRank * queryHeads * (nopeSize + valueSize) +
    (outputGate ? 2 : 1) * queryHeads * valueSize * hidden +
    ofIndexer
  );
}

/** KV cache of one token in one layer, bytes. */
function kvBytesPerLayer({ kvHeads, headSize, mla }: TransformerShape, bytesPerElement: number): number {
  if (mla === null) return 2 * kvHeads * headSize * bytesPerElement;
  // The indexer's keys are in 8 bits with a scale of 4 bytes.
  return (mla.kvRank + mla.ropeSize) * bytesPerElement + (mla.indexer ? mla.indexer.size + 4 : 0);
}

/** Layers of each kind of KV cache: the kinds differ in the tokens that they keep. Linear and sparse ones are apart. */
export function layersByWindow({ layers }: TransformerShape): Map<number | null, number> {
  const counts = new Map<number | null, number>();
  for (const { window, count, linear, sparse } of layers)
    if (linear === undefined && sparse === undefined) counts.set(window, (counts.get(window) ?? 0) + count);
  return counts;
}

/** KV cache of a sequence of `contextTokens`, bytes; layers with a window keep no more than the window. */
export function kvBytesOfSequence(
  shape: TransformerShape,
  contextTokens: number,
  bytesPerElement: number,
): number {
  let tokens = 0;
  for (const [window, count] of layersByWindow(shape))
    tokens += count * Math.min(contextTokens, window ?? contextTokens);
  const sparse = shape.layers.reduce(
    (sum, { count, sparse: own }) =>
      sum + (own === undefined ? 0 : count * (own.kvNumbers * contextTokens + own.windowNumbers)),
    0,
  );
  return tokens * kvBytesPerLayer(shape, bytesPerElement) + sparse * bytesPerElement;
}

/**
 * Groups of layers that vLLM keeps KV blocks for, and KV of one token in one group, bytes in 16 bit: as many layers a group as
 * the rarest kind has, or the most frequent where that has less than half as many more (`kv_cache_utils.py` of vLLM 0.32).
 * `undefined` where all layers attend to all tokens.
 */
export function kvGroups(shape: TransformerShape, bytesPerElement: number) {
  const kinds = [...layersByWindow(shape)];
  if (kinds.every(([window]) => window === null)) return undefined;
  const counts = kinds.map(([, count]) => count);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const layers = most < 1.5 * least ? most : least;
  const attention = kinds.flatMap(([window, count]) => {
    const group = window === null ? {} : { [shape.chunkedAttention ? 'chunk' : 'window']: window };
    return Array.from({ length: Math.ceil(count / layers) }, () => group);
  });
  return { bytesPerToken: layers * kvBytesPerLayer(shape, bytesPerElement), attention };
}

/** GPUs of a tensor-parallel group that hold different KV; more than these hold copies. */
export function kvShards({ kvHeads, mla }: TransformerShape): number {
  return mla === null ? kvHeads : 1;
}

/**
 * Memory of LoRA adapters on each GPU, GiB: vLLM holds `maxLoras` slots of `maxLoraRank` for every projection, token embedding and
 * output layer among them. A projection from `in` to `out` has an A of rank x in and a B of out x rank, in 16 bit; tensor parallelism
 * divides the B of what it divides by columns, and the A of what it divides by rows. `undefined` with latent, linear or sparse attention.
 */
export function loraGiB(
  shape: TransformerShape,
  { maxLoras, maxLoraRank }: { readonly maxLoras: number; readonly maxLoraRank: number },
  { gpu, parallel = {} }: Pick<EngineProfile, 'gpu' | 'parallel'>,
): number | undefined {
  const { data = 1, pipeline = 1, expert = 1 } = parallel;
  const tensor = gpu.count / data / pipeline;
  const { hidden, vocabulary, layers, queryHeads, kvHeads, headSize, mla, outputGate } = shape;
  const queries = (queryHeads * headSize) / tensor;
  const keys = headSize * Math.max(1, kvHeads / tensor);
  const attention = 4 * hidden + (outputGate ? 3 : 2) * queries + 2 * keys;
  // Gate and up projection side by side, and the way back.
  const gated = (inter: number, width = hidden, parts = tensor) => 3 * width + (3 * inter) / parts;
  let widths = 0;
  for (const { count, linear, sparse, feedForward } of layers) {
    if (linear ?? sparse ?? mla) return undefined;
    widths += count * attention;
    if (!isMixture(feedForward)) {
      widths += count * gated(feedForward.inter);
      continue;
    }
    const { experts, inter, width, sharedInter } = feedForward;
    const whole = expert > 1;
    const own = (whole ? experts / expert : experts) * gated(inter, width, whole ? 1 : tensor);
    widths += count * (own + (sharedInter > 0 ? gated(sharedInter) : 0) + hidden + experts);
  }
  const numbers = widths / pipeline + 2 * (hidden + vocabulary);
  return (2 * maxLoras * maxLoraRank * numbers) / 2 ** 30;
}
