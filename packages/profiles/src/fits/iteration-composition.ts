import type { EngineOverheads } from '../data/engine-constants.ts';
import type { Gpu } from '../data/gpu.ts';
import {
  isMixture,
  type LayerGroup,
  type LinearAttention,
  linearWidth,
  type Mixture,
  type TransformerShape,
} from '../data/transformer-shape.ts';
import {
  type AttentionShape,
  type DecodeAttention,
  type LinearShape,
  type ModuleShape,
  type OperatorTables,
  type PrefillAttention,
  pairsOf,
} from '../tables/operator-tables.ts';

/** Division of a model over GPUs. */
export interface Parallelism {
  readonly tensor: number;
  readonly pipeline: number;
  /** Replicas of the attention that share the experts. */
  readonly data: number;
  /** GPUs that the experts are divided over; 1: each expert is divided as the other weights are. */
  readonly expert: number;
}

/** Names of the precisions in the tables. */
export interface TablePrecisions {
  /** Projections of the attention. */
  readonly attention: string;
  /** Feed-forward layers that every token passes. */
  readonly feedForward: string;
  /** Of which the fastest kernel is taken. */
  readonly experts: readonly string[];
  readonly latent: string;
  readonly kv: 'bfloat16' | 'fp8';
}

/** An iteration of at most one chunk of a prompt and of decodes with equal contexts. */
export interface ComposedIteration {
  /** Prompt tokens computed; 0: none. */
  readonly chunk: number;
  /** Tokens of that prompt in the KV cache before. */
  readonly cached: number;
  readonly decodes: number;
  /** Context of each decode, tokens. */
  readonly context: number;
}

/** Shortest time of a kernel, in a CUDA graph, us: norms and activations of one token on RTX 4090 take 1.9 to 2.8. */
const KERNEL_US = 2;
/** Sliding windows from this length on are longer than most contexts, and count as the whole context, tokens. */
const LONG_WINDOW = 4096;
/** Sampling: 25 us and 2.2 passes over the logits in 32 bits, measured on RTX 4090 at 1 to 256 sequences. */
const SAMPLER_US = 25;
const SAMPLER_BYTES = 2.2 * 4;
const BYTES = 2;
/** Context at which two ways to compute attention are compared, tokens: a choice. */
const USUAL_CONTEXT = 1024;
/** Choices for each expert at which nearly all are read. */
const ALL_READ = 4;

/** Whether matrix multiplications of a precision take activations of 8 bits or fewer. */
function isQuantized(precision: string): boolean {
  return /^(fp8|nvfp4)/.test(precision);
}

/** Time of what runs side by side: about the longer one, as in `IterationLaw`. */
export function softmax(a: number, b: number): number {
  return Math.sqrt(Math.sqrt(a ** 4 + b ** 4));
}

/** A model, divided, on a GPU that the tables are of, under an engine with these overheads. */
interface Composed {
  readonly tables: OperatorTables;
  readonly shape: TransformerShape;
  readonly gpu: Gpu;
  readonly parallel: Parallelism;
  readonly precisions: TablePrecisions;
  readonly overheads: EngineOverheads;
}

/** The time of an iteration as the sum of its kernels, from the tables of a GPU. */
export class IterationComposition {
  readonly #of: Composed;

  constructor(of: Composed) {
    const layers = of.shape.layers.map((group) => ({
      ...group,
      window: group.window !== null && group.window < LONG_WINDOW ? group.window : null,
    }));
    this.#of = { ...of, shape: { ...of.shape, layers } };
  }

  /** All that works token by token: projections, feed-forward, small kernels, all-reduces, us. */
  weightsUs(tokens: number): number {
    const own = this.#share(tokens);
    return this.#layerSum(
      (group) => this.#projectionsUs(group, own) + this.#feedForwardUs(group, own, tokens),
    );
  }

  /** The rest of an iteration that only decodes, but for what its contexts take, us. */
  decodeRestUs(sequences: number): number {
    return this.#decodeLaunchUs(sequences) + this.#outputUs(sequences) + this.#overheadUs(sequences, false);
  }

  /** Added by each context token that one of `sequences` decodes reads, us. */
  contextUs(sequences: number): number {
    const { data, pipeline } = this.#of.parallel;
    const perToken = this.#layerSum((group) =>
      group.window === null ? this.#decodeAttention(group, this.#share(sequences)).perContextTokenUs : 0,
    );
    const { contextFactor, perContextTokenNs } = this.#of.overheads;
    return (perToken * contextFactor + perContextTokenNs / 1e3) / data / pipeline;
  }

  /** The rest of an iteration of one chunk of `tokens`, but for its (query, key) pairs, us. */
  prefillRestUs(tokens: number): number {
    return (
      this.#prefillLaunchUs() + this.#prefillTokensUs(tokens) + this.#outputUs(1) + this.#overheadUs(0, true)
    );
  }

  /** Added by each (query, key) pair of a chunk, us. */
  pairUs(): number {
    const { data, pipeline } = this.#of.parallel;
    const perPair = this.#layerSum((group) =>
      group.window === null ? this.#prefillAttention(group).perPairUs : 0,
    );
    return perPair / data / pipeline;
  }

  /** A whole iteration: a chunk of a prompt behind `cached` tokens, and decodes of the same context. */
  iterationUs({ chunk, cached, decodes, context }: ComposedIteration): number {
    const rest =
      chunk === 0
        ? this.decodeRestUs(decodes)
        : Math.max(decodes === 0 ? 0 : this.#decodeLaunchUs(decodes), this.#prefillLaunchUs()) +
          this.#prefillTokensUs(chunk) +
          this.#outputUs(decodes + 1) +
          this.#overheadUs(decodes, true);
    const contexts = decodes === 0 ? 0 : decodes * context * this.contextUs(decodes);
    const pairs = chunk === 0 ? 0 : chunk * (cached + chunk / 2) * this.pairUs();
    const weights = this.weightsUs(chunk + decodes);
    if (chunk === 0 || !this.eagerPrefill) return weights + rest + contexts + pairs;
    // Launches and kernels run side by side.
    const launches = this.#prefillLaunchesUs();
    const attention = this.#prefillTokensUs(chunk);
    return rest - launches - attention + softmax(launches, weights + attention + pairs) + contexts;
  }

  get eagerPrefill(): boolean {
    return this.#of.overheads.eagerPrefill === true;
  }

  /** Attention of the decodes, with sliding windows that are full. */
  #decodeLaunchUs(sequences: number): number {
    const own = this.#share(sequences);
    return this.#layerSum((group) => {
      const { launchUs, perContextTokenUs } = this.#decodeAttention(group, own);
      return launchUs + (group.window === null ? 0 : perContextTokenUs * own * group.window);
    });
  }

  #prefillLaunchUs(): number {
    return this.#layerSum((group) => this.#prefillAttention(group).launchUs);
  }

  /** Attention of a chunk that grows with its tokens: queries beyond a window see as many keys each. */
  #prefillTokensUs(tokens: number): number {
    const own = this.#share(tokens);
    return this.#layerSum((group) => {
      const attention = this.#prefillAttention(group);
      const pairs = group.window === null ? 0 : pairsOf(own, group.window);
      return attention.tokensUs(own) + attention.perPairUs * pairs;
    });
  }

  /** Tokens of a batch that one replica of the attention computes in one micro-batch of the pipeline. */
  #share(tokens: number): number {
    return Math.max(1, tokens / this.#of.parallel.data / this.#of.parallel.pipeline);
  }

  /** Sum over all layers, of which the pipeline's stages work on one micro-batch after another. */
  #layerSum(ofLayer: (group: LayerGroup) => number): number {
    return this.#of.shape.layers.reduce((sum, group) => sum + group.count * ofLayer(group), 0);
  }

  #overheadUs(sequences: number, prefills: boolean): number {
    const { iterationUs, perLayerUs, perSequenceUs, perLinearLayerUs, perIndexerUs } = this.#of.overheads;
    const { parallelPerLayerUs } = this.#of.overheads;
    const indexerUs = this.#of.shape.mla?.indexer ? perIndexerUs : 0;
    const layers = this.#layerSum(
      ({ linear }) =>
        perLayerUs +
        (this.#of.parallel.tensor > 1 ? parallelPerLayerUs : 0) +
        (linear === undefined ? indexerUs : perLinearLayerUs),
    );
    const launches = prefills ? this.#prefillLaunchesUs() : 0;
    return iterationUs * this.#of.parallel.pipeline + layers + launches + perSequenceUs * sequences;
  }

  /** Launches of the kernels of a prefill, without CUDA graphs. */
  #prefillLaunchesUs(): number {
    const { prefillPerLayerUs, prefillPerLinearLayerUs } = this.#of.overheads;
    return this.#layerSum(
      ({ linear }) => prefillPerLayerUs + (linear === undefined ? 0 : prefillPerLinearLayerUs),
    );
  }

  #projectionsUs({ linear, sparse }: LayerGroup, tokens: number): number {
    const { hidden, queryHeads, headSize, qkNorm, mla, outputGate } = this.#of.shape;
    const { tensor } = this.#of.parallel;
    const { attention } = this.#of.precisions;
    const queryWidth = (queryHeads * headSize) / tensor;
    const kvWidth = this.#kvHeads() * headSize;
    const mixing = this.#of.shape.hyperConnections ? this.#of.tables.hyperConnectionsUs(tokens, hidden) : 0;
    const norms = mixing + 2 * this.#kernelUs(4 * hidden * tokens);
    if (linear !== undefined) {
      const values = (linear.valueHeads * linear.valueSize) / tensor;
      return (
        norms +
        this.#gemmUs(attention, tokens, (linearWidth(linear) - 2 * linear.valueHeads) / tensor, hidden) +
        // The two gates of each head have a projection of their own.
        this.#of.tables.gemmUs('bfloat16', tokens, (2 * linear.valueHeads) / tensor, hidden) +
        // Splitting of the projections, both gates, and the norm of the output.
        2 * this.#kernelUs(values * tokens) +
        this.#kernelUs(3 * values * tokens) +
        this.#gemmUs(attention, tokens, hidden, values) +
        this.#reduceUs(tokens)
      );
    }
    if (sparse !== undefined) return norms + this.#reduceUs(tokens);
    if (mla !== null) {
      const gates = outputGate ? (queryHeads * mla.valueSize) / tensor : 0;
      const gate =
        gates && this.#gemmUs(attention, tokens, gates, hidden) + this.#kernelUs(3 * gates * tokens);
      return norms + gate + this.#reduceUs(tokens);
    }
    return (
      (outputGate ? this.#kernelUs(3 * queryWidth * tokens) : 0) +
      norms +
      // Rotary embedding and the write to the KV cache.
      this.#kernelUs(2 * (queryWidth + kvWidth) * tokens) +
      this.#kernelUs(4 * kvWidth * tokens) +
      (qkNorm ? this.#kernelUs(2 * (queryWidth + kvWidth) * tokens) + this.#acrossNormUs(tokens) : 0) +
      this.#gemmUs(attention, tokens, (outputGate ? 2 : 1) * queryWidth + 2 * kvWidth, hidden) +
      this.#gemmUs(attention, tokens, hidden, queryWidth) +
      this.#reduceUs(tokens)
    );
  }

  /** A norm over the heads of several GPUs, which first exchange a sum of each token's queries and one of its keys. */
  #acrossNormUs(tokens: number): number {
    const { tensor } = this.#of.parallel;
    const { acrossNormKernels } = this.#of.overheads;
    if (!this.#of.shape.qkNormAcross || tensor === 1 || acrossNormKernels === 0) return 0;
    return acrossNormKernels * KERNEL_US + 2 * this.#of.tables.allReduceUs(tensor, tokens);
  }

  #feedForwardUs({ feedForward }: LayerGroup, own: number, all: number): number {
    const { tensor } = this.#of.parallel;
    if (isMixture(feedForward)) return this.#expertsUs(feedForward, own, all);
    return this.#gatedUs(own, feedForward.inter / tensor) + this.#reduceUs(own);
  }

  /** A feed-forward of gate, up and down projection. */
  #gatedUs(tokens: number, inter: number): number {
    const { hidden } = this.#of.shape;
    const precision = this.#of.precisions.feedForward;
    return (
      this.#gemmUs(precision, tokens, 2 * inter, hidden) +
      this.#kernelUs(3 * inter * tokens) +
      this.#gemmUs(precision, tokens, hidden, inter)
    );
  }

  /** A matrix multiplication behind the quantization of its input. */
  #gemmUs(precision: string, m: number, n: number, k: number): number {
    return (
      this.#of.tables.gemmUs(precision, m, n, k) +
      (isQuantized(precision) ? this.#of.tables.quantizeUs(m, k) : 0)
    );
  }

  #expertsUs(mixture: Mixture, own: number, all: number): number {
    const { experts, perToken, inter, width } = mixture;
    const { hidden } = this.#of.shape;
    const { tensor, pipeline, expert, data } = this.#of.parallel;
    const { paddedExpertsUs } = this.#of.overheads;
    const isPadded = paddedExpertsUs !== null && this.#of.precisions.experts.includes('fp8_block');
    const least = isPadded ? ALL_READ * (experts / perToken) : 1;
    const routed = this.#of.tables.expertsUs(
      this.#of.precisions.experts,
      {
        ...{ hidden: width ?? hidden, inter, experts, perToken },
        tensorParallel: (tensor * data) / expert,
        expertParallel: expert,
      },
      Math.max(least, all / pipeline),
    );
    const router = this.#of.tables.gemmUs('bfloat16', own, experts, hidden) + KERNEL_US;
    const shared = this.#sharedExpertUs(mixture, own);
    // Replicas of the attention exchange their tokens before and after the experts, as one all-reduce would.
    const exchange = data === 1 ? 0 : this.#reduceUs(Math.max(1, all / pipeline), tensor * data);
    const quantized = this.#of.precisions.experts.some(isQuantized)
      ? this.#of.tables.quantizeUs(own, hidden)
      : 0;
    const padding = isPadded ? paddedExpertsUs : 0;
    const projections =
      width === undefined
        ? 0
        : this.#gemmUs(this.#of.precisions.feedForward, own, width, hidden) +
          this.#gemmUs(this.#of.precisions.feedForward, own, hidden, width);
    const alone = projections + routed + padding + quantized + router;
    const sharesTime = all <= this.#of.overheads.sharedExpertStreamTokens;
    return (sharesTime ? softmax(alone, shared) : alone + shared) + exchange + this.#reduceUs(own);
  }

  #sharedExpertUs({ experts, inter, sharedInter }: Mixture, tokens: number): number {
    const { tensor, expert } = this.#of.parallel;
    const { mla, hidden } = this.#of.shape;
    const { memoryGBps, fp4Tflops } = this.#of.gpu;
    if (sharedInter === 0) return 0;
    const alone = this.#gatedUs(tokens, sharedInter / tensor);
    const isDeepSeekV3 = mla !== null && !mla.indexer && experts === 256 && sharedInter === inter;
    if (!this.#of.overheads.fusesSharedExpert || !isDeepSeekV3 || expert > 1 || fp4Tflops !== null)
      return alone;
    // Nothing is launched for it: its weights are read, and more tokens take as much longer as by themselves.
    const bytes = isQuantized(this.#of.precisions.feedForward) ? 1 : BYTES;
    const readUs = (3 * hidden * (sharedInter / tensor) * bytes) / (memoryGBps * 1e3);
    return readUs + alone - this.#gatedUs(1, sharedInter / tensor);
  }

  #reduceUs(tokens: number, gpus = this.#of.parallel.tensor): number {
    return gpus === 1 ? 0 : this.#of.tables.allReduceUs(gpus, tokens * this.#of.shape.hidden);
  }

  /** A kernel that moves so many 16-bit numbers. */
  #kernelUs(numbers: number): number {
    return KERNEL_US + (BYTES * numbers) / (this.#of.gpu.memoryGBps * 1e3);
  }

  /** Output layer and sampling, which only the last token of a sequence passes. */
  #outputUs(sequences: number): number {
    const { hidden, vocabulary } = this.#of.shape;
    const own = this.#share(sequences);
    const head = this.#of.tables.gemmUs('bfloat16', own, vocabulary / this.#of.parallel.tensor, hidden);
    const sampler = SAMPLER_US + (SAMPLER_BYTES * vocabulary * own) / (this.#of.gpu.memoryGBps * 1e3);
    return this.#of.parallel.pipeline * (head + sampler);
  }

  #kvHeads(): number {
    return Math.max(1, this.#of.shape.kvHeads / this.#of.parallel.tensor);
  }

  #attentionShape({ window }: LayerGroup): AttentionShape {
    const { queryHeads, headSize } = this.#of.shape;
    return {
      queryHeads: queryHeads / this.#of.parallel.tensor,
      kvHeads: this.#kvHeads(),
      headSize,
      window: window ?? 0,
      kvPrecision: this.#of.precisions.kv,
    };
  }

  #linearShape({ keyHeads, valueHeads, decayRank }: LinearAttention): LinearShape {
    const { tensor } = this.#of.parallel;
    return {
      table: decayRank === undefined ? 'gdn' : 'kda',
      ...{ keyHeads: Math.max(1, keyHeads / tensor), valueHeads: valueHeads / tensor },
    };
  }

  #moduleShape({ sparse }: LayerGroup): ModuleShape | null {
    const { mla, queryHeads } = this.#of.shape;
    if (mla === null && sparse === undefined) return null;
    const { tensor } = this.#of.parallel;
    const { latent: precision, kv: kvPrecision } = this.#of.precisions;
    const table = sparse?.table ?? (mla?.indexer ? 'dsa' : 'mla');
    return { table, heads: queryHeads / tensor, tensor, precision, kvPrecision };
  }

  #decodeAttention(group: LayerGroup, sequences: number): DecodeAttention {
    if (group.linear !== undefined)
      return this.#of.tables.linearDecode(this.#linearShape(group.linear), sequences);
    const whole = this.#moduleShape(group);
    return whole === null
      ? this.#of.tables.decodeAttention(this.#attentionShape(group), sequences)
      : this.#moduleDecode(whole, sequences);
  }

  /**
   * Attention of decodes with its projections. Where the engine's tables have the kernels of latent attention and the module is another engine's, both the module
   * and the sum of the kernels are bounds, and the lower one counts.
   */
  #moduleDecode(latent: ModuleShape, sequences: number): DecodeAttention {
    const module = this.#of.tables.moduleDecode(latent, sequences);
    const kernels = this.#of.tables.latentKernels(latent, sequences);
    if (kernels === null) return module;
    const { hidden, mla } = this.#of.shape;
    const { queryRank, kvRank, nopeSize, ropeSize, valueSize } = mla!;
    const queries = latent.heads * (nopeSize + ropeSize);
    const gemmUs = (n: number, k: number) => this.#of.tables.gemmUs(latent.precision, sequences, n, k);
    const projectionsUs =
      gemmUs((queryRank ?? queries) + kvRank + ropeSize, hidden) +
      (queryRank === null ? 0 : gemmUs(queries, queryRank)) +
      gemmUs(hidden, latent.heads * valueSize);
    // Norms of the compressed query and key, rotary embedding, and the write to the KV cache.
    const smallUs =
      this.#kernelUs(2 * ((queryRank ?? 0) + kvRank) * sequences) +
      this.#kernelUs(2 * latent.heads * ropeSize * sequences) +
      this.#kernelUs(2 * (kvRank + ropeSize) * sequences);
    const sum = { ...kernels, launchUs: kernels.launchUs + projectionsUs + smallUs };
    const usual = ({ launchUs, perContextTokenUs }: DecodeAttention) =>
      launchUs + perContextTokenUs * sequences * USUAL_CONTEXT;
    return usual(sum) < usual(module) ? sum : module;
  }

  #prefillAttention(group: LayerGroup): PrefillAttention {
    if (group.linear !== undefined) return this.#of.tables.linearPrefill(this.#linearShape(group.linear));
    const whole = this.#moduleShape(group);
    return whole === null
      ? this.#of.tables.prefillAttention(this.#attentionShape(group))
      : this.#of.tables.modulePrefill(whole);
  }
}
