import { quantile } from '@servegym/simulator/statistics';
import type { SparseAttention } from '../data/transformer-shape.ts';
import { ProfileError } from '../schema/read-json.ts';
import { type KernelTimes, timeAt } from './kernel-tables.ts';

/** One row of a published kernel table, by column. Latencies are in ms. */
export type OperatorRow = Readonly<Record<string, unknown>>;

/** Tables by file (`gemm_perf.parquet` is `gemm`), and the folder of their operator. */
export const TABLE_FOLDERS = {
  gemm: 'gemm',
  context_attention: 'attention',
  generation_attention: 'attention',
  custom_allreduce: 'comm',
  moe: 'moe',
  mla_context_module: 'mla',
  mla_generation_module: 'mla',
  /** Kernels of latent attention by themselves: the attention, and the products before and behind it. */
  generation_mla: 'mla',
  mla_bmm: 'mla_bmm',
  /** Latent attention over the tokens that an indexer chooses. */
  dsa_context_module: 'sparse_attention',
  dsa_generation_module: 'sparse_attention',
  /** Attention of DeepSeek-V4 to compressed tokens, chosen by an indexer or all. */
  dsv4_csa_context_module: 'sparse_attention',
  dsv4_csa_generation_module: 'sparse_attention',
  dsv4_hca_context_module: 'sparse_attention',
  dsv4_hca_generation_module: 'sparse_attention',
  /** Grouped queries over the blocks that an indexer chooses. */
  msa_context_module: 'msa',
  msa_generation_module: 'msa',
  /** Mixing of residual streams before and behind a layer. */
  mhc_module: 'mhc',
  /** Gated delta rule with the convolution before it; the same with a decay for each number of a key. */
  gdn: 'linear_attention',
  kda: 'kda',
  /** Quantization of activations: finding the scale, and applying it. */
  computescale: 'quantize',
  scale_matrix: 'quantize',
} as const;
/** Tables that no model can do without. */
export const NEEDED_TABLES = ['gemm', 'context_attention', 'generation_attention'] as const;

/** Rows of the kernel tables of one GPU and engine, by file. Absent: no such table. */
export type OperatorRows = Readonly<
  Record<(typeof NEEDED_TABLES)[number], readonly OperatorRow[]> &
    Partial<Record<keyof typeof TABLE_FOLDERS, readonly OperatorRow[]>>
>;

/** Attention heads of one GPU. */
export interface AttentionShape {
  readonly queryHeads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Sliding window, tokens; 0: the whole context. */
  readonly window: number;
  readonly kvPrecision: 'bfloat16' | 'fp8';
}

/** Experts of a mixture's layer and their division over GPUs. */
export interface ExpertShape {
  readonly hidden: number;
  readonly inter: number;
  readonly experts: number;
  readonly perToken: number;
  readonly tensorParallel: number;
  readonly expertParallel: number;
}

/** Time of the attention of decoding: `launchUs + perContextTokenUs * sequences * context`. */
export type DecodeAttention = ReturnType<typeof decodeOf>;

/** Attention of one GPU that is measured with its projections: latent, or to chosen or compressed tokens. */
export interface ModuleShape {
  readonly table: 'mla' | 'dsa' | SparseAttention['table'];
  readonly heads: number;
  /** GPUs that share all heads. */
  readonly tensor: number;
  readonly precision: string;
  readonly kvPrecision: string;
}

/** Heads of a gated delta rule on one GPU. */
export interface LinearShape {
  readonly table: 'gdn' | 'kda';
  readonly keyHeads: number;
  readonly valueHeads: number;
}

/** Time of the attention of one prompt, behind a launch: by its tokens and by its (query, key) pairs. */
export interface PrefillAttention {
  readonly launchUs: number;
  tokensUs(tokens: number): number;
  readonly perPairUs: number;
}

/**
 * Bytes of KV that a benchmark must read for its KV to come from memory: repeated reads of less stay in the L2 cache
 * of up to 128 MB, and a server's weights pass through that cache between two layers. Where no benchmark reads as much,
 * the longest contexts count, from a quarter of the longest.
 */
const COLD_KV_BYTES = 160e6;
/** Measured contexts beyond the cache that tell how long reads take. */
const ENOUGH_COLD = 3;
/** A batch that seems to read so much faster than others, relative, was not measured at contexts that are long enough. */
const LEAST_SLOPE = 0.7;
/** Shortest prompt whose attention is more than its launch, tokens. */
const LEAST_PROMPT = 128;
const US_PER_MS = 1000;
/** Latent KV of one token in one layer: 512 numbers and 64 of its position, as in all models with tables. */
const LATENT_KV_WIDTH = 576;
/**
 * Experts up to which the busiest is taken to compute no more than the others: times of Mixtral-8x7B served on H100 agree
 * with balanced routing, and are 20 % below those of a power law.
 */
const FEW_EXPERTS = 16;
/** Tokens at which kernels are compared. */
const USUAL_TOKENS = 64;

interface ExpertTable {
  readonly precision: string;
  readonly shape: ExpertShape;
  /** Times when all experts have as many tokens, as far as that is possible. */
  readonly even: KernelTimes;
  /** Times by the steepest power law that was measured; `even` where none was. */
  readonly skewed: KernelTimes;
}

interface GemmTable {
  readonly ns: readonly number[];
  readonly ks: readonly number[];
  readonly cells: ReadonlyMap<string, KernelTimes>;
}

/** Kernel times of one GPU and engine, in us. Notes what it had to take from another shape. */
export class OperatorTables {
  /** Sentences on what the tables do not have and what was taken instead. */
  readonly notes = new Set<string>();
  /** Tables that times were taken from. */
  readonly used = new Set<keyof OperatorRows>();
  readonly #rows: OperatorRows;
  readonly #gemm: ReadonlyMap<string, GemmTable>;
  readonly #quantize: ReadonlyMap<number, KernelTimes>;
  readonly #experts: readonly ExpertTable[];
  readonly #found = new Map<string, { readonly table: ExpertTable; readonly scale: number }>();
  readonly #decode = new Map<string, DecodeAttention>();
  readonly #prefill = new Map<string, PrefillAttention>();

  constructor(rows: OperatorRows) {
    this.#rows = rows;
    this.#gemm = gemmTables(rows.gemm);
    this.#quantize = quantizeTimes(rows);
    this.#experts = expertTables(rows.moe ?? []);
  }

  /** Precisions that matrix multiplications were measured in, for instance `bfloat16` and `fp8_block`. */
  get gemmPrecisions(): readonly string[] {
    return [...this.#gemm.keys()];
  }

  /** Precisions that experts were measured in. */
  get expertPrecisions(): readonly string[] {
    return unique(this.#experts.map(({ precision }) => precision));
  }

  /** An m x k matrix times weights of k x n. Between measured n and k on a log scale, between measured m linearly. */
  gemmUs(precision: string, m: number, n: number, k: number): number {
    this.used.add('gemm');
    const table = this.#gemm.get(precision);
    if (table === undefined) {
      throw missing(`matrix multiplications in ${precision}`, this.gemmPrecisions);
    }
    const [ns, ks] = [bracket(table.ns, n), bracket(table.ks, k)];
    let log = 0;
    for (const [atN, weightN] of ns) {
      for (const [atK, weightK] of ks) {
        const weight = weightN * weightK;
        if (weight === 0) continue;
        const times = table.cells.get(`${atN}x${atK}`);
        if (times === undefined) throw missing(`a ${precision} matrix multiplication of ${n} x ${k}`, []);
        log += weight * Math.log(beyond(times, m));
      }
    }
    // Larger weights than any measured take as much longer.
    return Math.exp(log) * Math.max(1, n / ns[1][0]) * Math.max(1, k / ks[1][0]);
  }

  /** Quantization of m x k activations to 8 bits; 0 where the tables have none. */
  quantizeUs(m: number, k: number): number {
    if (this.#quantize.size === 0) return 0;
    this.used.add('computescale').add('scale_matrix');
    const taken = nearest([...this.#quantize.keys()], k);
    return beyond(this.#quantize.get(taken)!, (m * k) / taken);
  }

  /** All-reduce of so many 16-bit numbers, launched within a CUDA graph. */
  allReduceUs(gpus: number, elements: number): number {
    const rows = this.#rowsOf('custom_allreduce').filter((row) => !/eager/.test(String(row.kernel_source)));
    const counts = unique(rows.map((row) => Number(row.num_gpus)));
    if (counts.length === 0) throw missing('all-reduces', []);
    const taken = nearest(counts, gpus);
    if (taken !== gpus) this.notes.add(`all-reduce of ${gpus} GPUs: as of ${taken}`);
    const ofTaken = rows.filter((row) => Number(row.num_gpus) === taken);
    return beyond(timesBy(ofTaken, 'message_size'), elements);
  }

  /** The attention of `sequences` decoding sequences. */
  decodeAttention(shape: AttentionShape, sequences: number): DecodeAttention {
    return remembered(this.#decode, [shape, sequences], () => {
      const { rows, scale } = this.#attentionRows('generation_attention', shape);
      const kvBytes = 2 * kvHeadsOf(rows[0]) * Number(rows[0].head_dim) * bytesOf(shape.kvPrecision);
      return decodeOf(rows, kvBytes, scale, sequences);
    });
  }

  /** The attention of one prompt, fitted to all lengths with relative errors. */
  prefillAttention(shape: AttentionShape): PrefillAttention {
    return remembered(this.#prefill, shape, () => {
      const { rows, scale } = this.#attentionRows('context_attention', shape);
      return prefillOf(rows, scale);
    });
  }

  /**
   * The routed experts of one layer on the GPU with the most work, by the fastest kernel of the precisions given, which is
   * what engines pick. `tokens`: of all GPUs together. Routing lies half-way between choices that are random and a power
   * law's, and is no faster than the power law's.
   */
  expertsUs(precisions: readonly string[], shape: ExpertShape, tokens: number): number {
    const { table, scale } = remembered(this.#found, [precisions, shape], () =>
      this.#findExperts(precisions, shape),
    );
    this.used.add('moe');
    const { even, skewed } = table;
    const { experts, perToken } = shape;
    const enough = experts / perToken;
    const hit = enough * (1 - (1 - 1 / enough) ** tokens);
    const unread = timeAt(even, Math.min(tokens, enough)) - timeAt(even, Math.min(tokens, hit));
    const random = beyond(even, tokens) - Math.max(0, unread);
    if (experts <= FEW_EXPERTS) return scale * random;
    const busiest = beyond(skewed, tokens);
    return scale * Math.max(busiest, (busiest + random) / 2);
  }

  #findExperts(precisions: readonly string[], shape: ExpertShape): { table: ExpertTable; scale: number } {
    const wanted = kernelShape(shape);
    const distance = (other: ExpertShape) => {
      const measured = kernelShape(other);
      return (Object.keys(wanted) as (keyof typeof wanted)[]).reduce(
        (sum, key) => sum + EXPERT_WEIGHTS[key] * Math.abs(Math.log(measured[key] / wanted[key])),
        0,
      );
    };
    const usable = this.#experts.filter((table) => precisions.includes(table.precision));
    if (usable.length === 0) throw missing(`experts in ${precisions.join(' or ')}`, this.expertPrecisions);
    const exact = usable.filter((table) => distance(table.shape) === 0);
    // Without an exact shape the nearest of each precision: the nearest of all may be of a slow kernel.
    const near = exact.length > 0 ? [exact] : Map.groupBy(usable, ({ precision }) => precision).values();
    const nearest = [...near].flatMap((tables) => {
      const least = Math.min(...tables.map((table) => distance(table.shape)));
      return tables.filter((table) => distance(table.shape) === least);
    });
    const scaleOf = (table: ExpertTable) => expertWork(shape) / expertWork(table.shape);
    const usualUs = (table: ExpertTable) => scaleOf(table) * beyond(table.skewed, USUAL_TOKENS);
    const best = leastBy(nearest, usualUs);
    if (distance(best.shape) > 0)
      this.notes.add(`experts ${expertLabel(shape)}: as of ${expertLabel(best.shape)}, by their size`);
    return { table: best, scale: scaleOf(best) };
  }

  /** Attention with its projections, of decoding. */
  moduleDecode(shape: ModuleShape, sequences: number): DecodeAttention {
    return remembered(this.#decode, [shape, sequences], () => {
      const { rows, scale } = this.#moduleRows(shape, 'generation_module');
      // All contexts count of attention that reads few tokens of long ones.
      const kvBytes =
        shape.table === 'mla' ? LATENT_KV_WIDTH * bytesOf(shape.kvPrecision) : Number.POSITIVE_INFINITY;
      const { launchUs, perContextTokenUs } = decodeOf(rows, kvBytes, 1, sequences);
      return { launchUs: scale * launchUs, perContextTokenUs: scale * perContextTokenUs };
    });
  }

  /**
   * Latent attention of decoding without its projections and small kernels: the kernel by itself and the products that compress
   * queries and expand values. `null`: the engine's tables have none.
   */
  latentKernels({ table, heads, kvPrecision }: ModuleShape, sequences: number): DecodeAttention | null {
    const ofHeads = (rows: readonly OperatorRow[] = []) =>
      rows.filter((row) => Number(row.num_heads) === heads);
    const rows = ofHeads(this.#rows.generation_mla).filter((row) => row.kv_cache_dtype === kvPrecision);
    const products = ofHeads(this.#rows.mla_bmm);
    if (table !== 'mla' || rows.length === 0 || products.length === 0) return null;
    return remembered(this.#decode, ['kernels', heads, kvPrecision, sequences], () => {
      const attention = decodeOf(rows, LATENT_KV_WIDTH * bytesOf(kvPrecision), 1, sequences);
      let { launchUs } = attention;
      for (const name of ['mla_gen_pre', 'mla_gen_post']) {
        const ofName = products.filter((row) => row.op_name === name);
        launchUs += beyond(timesBy(ofName, 'num_tokens'), sequences);
      }
      return { ...attention, launchUs };
    });
  }

  /** Attention with its projections, of one prompt. */
  modulePrefill(shape: ModuleShape): PrefillAttention {
    return remembered(this.#prefill, shape, () => {
      const { rows, scale } = this.#moduleRows(shape, 'context_module');
      return shape.table === 'mla' ? prefillOf(rows, scale) : prefillByTokens(promptTimes(rows, scale));
    });
  }

  /** Rows of a shape, or else of the nearest number of heads, and the factor between them. */
  #moduleRows(
    { table, heads, tensor, precision, kvPrecision }: ModuleShape,
    part: 'context_module' | 'generation_module',
  ): { rows: readonly OperatorRow[]; scale: number } {
    const kind = `${MODULES[table]} attention`;
    const all = this.#rowsOf(`${table}_${part}`).filter(
      (row) =>
        // Of several models, some leave the indexer to the layer before.
        !/skip/.test(String(row.op_name)) && (part === 'generation_module' || Number(row.step ?? 0) === 0),
    );
    const there = unique(all.map((row) => `${row.num_heads} heads in ${row.gemm_type}`));
    const [gemmType, kvType] = [
      onlyOr(all, 'gemm_type', precision),
      onlyOr(all, 'kv_cache_dtype', kvPrecision),
    ];
    const own = all.filter((row) => row.gemm_type === gemmType && row.kv_cache_dtype === kvType);
    if (own.length === 0) throw missing(`${kind} with ${heads} heads in ${precision}`, there);
    const taken = nearest(unique(own.map((row) => Number(row.num_heads))), heads);
    const ofHeads = own.filter((row) => Number(row.num_heads) === taken);
    const divided = ofHeads.filter((row) => Number(row.tp_size) === tensor);
    if (taken !== heads) this.notes.add(`${kind} with ${heads} heads: as of ${taken}, by their number`);
    return { rows: divided.length > 0 ? divided : ofHeads, scale: heads / taken };
  }

  /** Mixing of the residual streams of so many tokens, before and behind the two halves of a layer. */
  hyperConnectionsUs(tokens: number, hidden: number): number {
    const rows = this.#rowsOf('mhc_module');
    if (rows.length === 0) throw missing('the mixing of residual streams', []);
    const taken = nearest(unique(rows.map((row) => Number(row.hidden_size))), hidden);
    const own = rows.filter((row) => Number(row.hidden_size) === taken);
    return (beyond(summedBy(own, 'num_tokens'), tokens) * hidden) / taken;
  }

  /** A gated delta rule of decoding sequences, whatever their contexts. */
  linearDecode(shape: LinearShape, sequences: number): DecodeAttention {
    const { times, scale } = this.#linearTimes(shape, 'generation');
    return { launchUs: scale * beyond(times, sequences), perContextTokenUs: 0 };
  }

  /** A gated delta rule of one prompt. */
  linearPrefill(shape: LinearShape): PrefillAttention {
    const { times, scale } = this.#linearTimes(shape, 'context');
    return prefillByTokens(times.map(({ size, us: time }) => ({ size, us: scale * time })));
  }

  /** By sequences of one token, or by the tokens of one sequence: the sum of the kernels. */
  #linearTimes(
    { table, keyHeads, valueHeads }: LinearShape,
    phase: 'context' | 'generation',
  ): { times: KernelTimes; scale: number } {
    const all = this.#rowsOf(table).filter((row) => row.phase === phase);
    if (all.length === 0) throw missing('linear attention', []);
    const distance = (row: OperatorRow) =>
      Math.abs(Math.log(Number(row.num_v_heads) / valueHeads)) +
      Math.abs(Math.log(Number(row.num_k_heads) / keyHeads)) / 4;
    const best = leastBy(all, distance);
    const rows = all.filter(
      (row) =>
        row.num_v_heads === best.num_v_heads &&
        row.num_k_heads === best.num_k_heads &&
        row.d_model === best.d_model &&
        (phase === 'generation' || Number(row.batch_size) === 1),
    );
    if (distance(best) > 0)
      this.notes.add(
        `linear attention of ${keyHeads}/${valueHeads} heads: as of ${best.num_k_heads}/${best.num_v_heads}`,
      );
    const times = summedBy(rows, phase === 'generation' ? 'batch_size' : 'seq_len');
    return { times, scale: valueHeads / Number(best.num_v_heads) };
  }

  #rowsOf(file: keyof OperatorRows): readonly OperatorRow[] {
    this.used.add(file);
    return this.#rows[file] ?? [];
  }

  /** Rows of the shape that is most like this one, and the factor that its KV bytes differ by. */
  #attentionRows(
    file: 'context_attention' | 'generation_attention',
    shape: AttentionShape,
  ): { rows: readonly OperatorRow[]; scale: number } {
    const all = this.#rowsOf(file);
    const precisions = unique(all.map((row) => String(row.kv_cache_dtype)));
    const ofPrecision = all.filter((row) => row.kv_cache_dtype === shape.kvPrecision);
    if (ofPrecision.length === 0)
      throw missing(`attention over a KV cache in ${shape.kvPrecision}`, precisions);
    const distance = (row: OperatorRow) =>
      Math.abs(Math.log(Number(row.num_heads) / shape.queryHeads)) +
      2 * Math.abs(Math.log(kvHeadsOf(row) / shape.kvHeads)) +
      4 * Math.abs(Math.log(Number(row.head_dim) / shape.headSize)) +
      windowDistance(windowOf(row), shape.window === 0 ? Number.POSITIVE_INFINITY : shape.window);
    const best = leastBy(ofPrecision, distance);
    const keys = ['num_heads', 'num_key_value_heads', 'head_dim', 'window_size'];
    const rows = ofPrecision.filter((row) => keys.every((key) => row[key] === best[key]));
    if (distance(best) === 0) return { rows, scale: 1 };
    this.notes.add(
      `${file.replace('_', ' ')} of ${shape.queryHeads}/${shape.kvHeads} heads of ${shape.headSize}${shape.window === 0 ? '' : ` in a window of ${shape.window}`}: as of ${best.num_heads}/${kvHeadsOf(best)} of ${best.head_dim}`,
    );
    const work = (queryHeads: number, kv: number, size: number) =>
      (file === 'context_attention' ? queryHeads : kv) * size;
    return {
      rows,
      scale:
        work(shape.queryHeads, shape.kvHeads, shape.headSize) /
        work(Number(best.num_heads), kvHeadsOf(best), Number(best.head_dim)),
    };
  }
}

/** KV heads of a measured attention; a table may give those of plain multi-head attention as 0. */
function kvHeadsOf(row: OperatorRow): number {
  return Number(row.num_key_value_heads) || Number(row.num_heads);
}

/** Names of what the tables of modules measure. */
const MODULES: Readonly<Record<ModuleShape['table'], string>> = {
  mla: 'latent',
  dsa: 'sparse latent',
  msa: 'block-sparse',
  dsv4_csa: 'compressed sparse',
  dsv4_hca: 'compressed',
};

/** The one value of a column, which is that of the only model measured, whatever its experts are in; else what is wanted. */
function onlyOr(rows: readonly OperatorRow[], column: string, wanted: string): unknown {
  const values = new Set(rows.map((row) => row[column]));
  return values.size === 1 ? rows[0][column] : wanted;
}

/** Bytes of a number in the KV cache. */
function bytesOf(kvPrecision: string): number {
  return kvPrecision === 'fp8' ? 1 : 2;
}

/** The value of a key, made when it is first needed. */
function remembered<T>(known: Map<string, T>, key: unknown, make: () => T): T {
  const text = JSON.stringify(key);
  const value = known.get(text) ?? make();
  known.set(text, value);
  return value;
}

/** (query, key) pairs of a prompt of so many tokens whose queries see `window` keys at most. */
export function pairsOf(tokens: number, window: number): number {
  if (tokens <= window) return (tokens * tokens) / 2;
  return window * (tokens - window / 2);
}

/**
 * Fitted by relative errors to contexts that exceed the cache. Batches with too few of those are as the nearest one with
 * enough, behind the launch that was measured for them.
 *
 * @param kvBytes KV of one token of one sequence in one layer on one GPU.
 */
function decodeOf(rows: readonly OperatorRow[], kvBytes: number, scale: number, sequences: number) {
  const all = unique(rows.map((row) => Number(row.batch_size))).map((batch) => {
    const own = rows.filter((row) => Number(row.batch_size) === batch);
    const times = sorted(own.map((row) => [Math.min(Number(row.step) + 1, windowOf(row)) * batch, us(row)]));
    return { batch, shortUs: times[0].us, times };
  });
  const most = Math.max(...all.map(({ times }) => times.at(-1)!.size));
  const coldTokens = Math.min(COLD_KV_BYTES / kvBytes, most / 4);
  const batches = all.map(({ batch, shortUs, times }) => ({
    ...{ batch, shortUs },
    cold: times.filter(({ size }) => size >= coldTokens),
  }));
  const enough = Math.min(ENOUGH_COLD, Math.max(...batches.map(({ cold }) => cold.length)));
  const least = batches[0].shortUs;
  const fits = batches.map(({ batch, shortUs, cold }) => {
    if (cold.length < enough) return { batch, launchUs: shortUs, slope: null };
    // Reads hide part of the work that many short sequences make.
    const launchUs = Math.min(Math.max(lineOf(cold).intercept, least), shortUs);
    return { batch, launchUs, slope: lineOf(cold, launchUs).slope * scale };
  });
  const slopes = fits.flatMap(({ batch, slope }) => (slope === null ? [] : [{ size: batch, us: slope }]));
  const ascending = slopes.map(({ us: slope }) => slope).sort((a, b) => a - b);
  const usual = quantile(ascending, 0.5);
  const likely = slopes.filter(({ us: slope }) => slope >= LEAST_SLOPE * usual);
  const launches = fits.map(({ batch, launchUs }) => ({ size: batch, us: launchUs }));
  return {
    launchUs: timeAt(launches, sequences),
    perContextTokenUs: timeAt(likely, Math.min(sequences, likely.at(-1)!.size)),
  };
}

/** The line of times with the least squared relative errors; through `intercept` where it is given. */
function lineOf(times: KernelTimes, intercept?: number): { slope: number; intercept: number } {
  const { first, second, both, isSingular } = twoFactors(
    times.map(({ size, us: time }) => [1 / time, size / time, intercept ? 1 - intercept / time : 1]),
  );
  if (intercept !== undefined) return { slope: Math.max(0, second), intercept };
  return isSingular ? { slope: 0, intercept: first } : { slope: both[1], intercept: both[0] };
}

/** Factors of two values with the least squared errors, of [one value, the other, target]: each alone, and both. */
function twoFactors(rows: readonly (readonly [number, number, number])[]) {
  let [xx, xz, zz, xy, zy] = [0, 0, 0, 0, 0];
  for (const [x, z, y] of rows) {
    xx += x * x;
    xz += x * z;
    zz += z * z;
    xy += x * y;
    zy += z * y;
  }
  const determinant = xx * zz - xz * xz;
  const both = [(xy * zz - zy * xz) / determinant, (zy * xx - xy * xz) / determinant] as const;
  return { first: xy / xx, second: zy / zz, both, isSingular: determinant === 0 };
}

/** Times of single prompts by their tokens. */
function promptTimes(rows: readonly OperatorRow[], scale = 1): KernelTimes {
  return sorted(
    rows.filter((row) => Number(row.batch_size) === 1).map((row) => [Number(row.isl), us(row) * scale]),
  );
}

/** As measured, without pairs. */
function prefillByTokens(times: KernelTimes): PrefillAttention {
  const launchUs = times[0].us;
  return {
    launchUs,
    tokensUs: (tokens) => Math.max(0, beyond(times, tokens) - launchUs),
    perPairUs: 0,
  };
}

/** Fitted to all lengths of single prompts, by relative errors. */
function prefillOf(rows: readonly OperatorRow[], scale: number): PrefillAttention {
  const window = windowOf(rows[0]);
  const times = promptTimes(rows, scale);
  const launchUs = times[0].us;
  const { first, second, both } = twoFactors(
    times
      .filter(({ size }) => size >= LEAST_PROMPT)
      .map(({ size, us: time }) => [size / time, pairsOf(size, window) / time, (time - launchUs) / time]),
  );
  const [perTokenUs, perPairUs] = both;
  // Either alone where the other would be negative.
  if (!(perTokenUs > 0)) return { launchUs, tokensUs: () => 0, perPairUs: Math.max(0, second) };
  const slope = perPairUs > 0 ? perTokenUs : Math.max(0, first);
  return { launchUs, tokensUs: (tokens) => slope * tokens, perPairUs: Math.max(0, perPairUs) };
}

/** Penalty of each difference when times of other experts are taken. */
const EXPERT_WEIGHTS: Readonly<Record<keyof ReturnType<typeof kernelShape>, number>> = {
  ...{ hidden: 1, width: 1, experts: 3, perToken: 3, expertParallel: 4 },
};

/** Shape that a kernel sees: the part of each expert that lies on its GPU, whatever the whole is. */
function kernelShape({ inter, tensorParallel, ...shape }: ExpertShape) {
  return { ...shape, width: inter / tensorParallel };
}

function expertWork({ hidden, inter, tensorParallel, expertParallel }: ExpertShape): number {
  return (hidden * inter) / tensorParallel / expertParallel;
}

function expertLabel(shape: ExpertShape): string {
  const { hidden, inter, experts, perToken, tensorParallel, expertParallel } = shape;
  return `${perToken} of ${experts}, ${hidden} x ${inter}, TP ${tensorParallel}, EP ${expertParallel}`;
}

function gemmTables(rows: readonly OperatorRow[]): Map<string, GemmTable> {
  return mapValues(
    Map.groupBy(rows, (row) => String(row.gemm_dtype)),
    (own) => ({
      ns: unique(own.map((row) => Number(row.n))),
      ks: unique(own.map((row) => Number(row.k))),
      cells: mapValues(
        Map.groupBy(own, ({ n, k }) => `${n}x${k}`),
        (cell) => timesBy(cell, 'm'),
      ),
    }),
  );
}

/** Times of both steps by m, for each k that they were measured at. */
function quantizeTimes({ computescale = [], scale_matrix = [] }: OperatorRows): Map<number, KernelTimes> {
  const byK = Map.groupBy([...computescale, ...scale_matrix], (row) => Number(row.k));
  return mapValues(byK, (own) => summedBy(own, 'm'));
}

function expertTables(rows: readonly OperatorRow[]): ExpertTable[] {
  const shapeOf = (row: OperatorRow): ExpertShape => ({
    hidden: Number(row.hidden_size),
    inter: Number(row.inter_size),
    experts: Number(row.num_experts),
    perToken: Number(row.topk),
    tensorParallel: Number(row.moe_tp_size),
    expertParallel: Number(row.moe_ep_size),
  });
  const kernels = Map.groupBy(rows, (row) =>
    JSON.stringify([String(row.moe_dtype), row.kernel_source, shapeOf(row)]),
  );
  return [...kernels.values()].map((own) => {
    const routings = Map.groupBy(own, (row) => String(row.distribution));
    // `balanced` is before the power laws, and of those the steeper one is last.
    const names = [...routings.keys()].sort();
    const [even, skewed] = [names[0], names.at(-1)!].map((name) =>
      timesBy(routings.get(name)!, 'num_tokens'),
    );
    return { precision: String(own[0].moe_dtype), shape: shapeOf(own[0]), even, skewed };
  });
}

function mapValues<Key, From, To>(map: ReadonlyMap<Key, From>, of: (value: From) => To): Map<Key, To> {
  return new Map([...map].map(([key, value]) => [key, of(value)]));
}

/** Times by the number in a column. */
function timesBy(rows: readonly OperatorRow[], column: string): KernelTimes {
  return sorted(rows.map((row) => [Number(row[column]), us(row)]));
}

/** The same with the times of one size added up: those of kernels that follow one another. */
function summedBy(rows: readonly OperatorRow[], column: string): KernelTimes {
  const sums = new Map<number, number>();
  for (const row of rows) {
    const size = Number(row[column]);
    sums.set(size, (sums.get(size) ?? 0) + us(row));
  }
  return sorted([...sums]);
}

/** As `timeAt`, in proportion to the size beyond the largest one measured. */
function beyond(times: KernelTimes, size: number): number {
  const last = times[times.length - 1];
  return size > last.size ? (last.us * size) / last.size : timeAt(times, size);
}

/** Measured sizes around `value` with their weights on a log scale. The nearest twice outside of them. */
function bracket(sizes: readonly number[], value: number) {
  const high = sizes.find((size) => size >= value) ?? sizes.at(-1)!;
  const low = high > value ? (sizes[sizes.indexOf(high) - 1] ?? high) : high;
  const share = low === high ? 0 : Math.log(value / low) / Math.log(high / low);
  return [[low, 1 - share] as const, [high, share] as const] as const;
}

function nearest(values: readonly number[], value: number): number {
  return leastBy(values, (each) => Math.abs(Math.log(each / value)));
}

/** The first of those with the least cost. */
function leastBy<T>(values: readonly T[], costOf: (value: T) => number): T {
  return values.reduce((best, value) => (costOf(value) < costOf(best) ? value : best));
}

/** By ascending size; of several kernels that were measured at one size, the fastest, which is what engines pick. */
function sorted(points: readonly (readonly [number, number])[]): KernelTimes {
  const fastest = new Map<number, number>();
  for (const [size, time] of points) fastest.set(size, Math.min(time, fastest.get(size) ?? time));
  return [...fastest].map(([size, time]) => ({ size, us: time })).sort((a, b) => a.size - b.size);
}

/** Sliding window of a measured attention, tokens. */
function windowOf(row: OperatorRow): number {
  return Number(row.window_size ?? 0) || Number.POSITIVE_INFINITY;
}

/** A window can be taken from the whole context, the whole context never from a window. */
function windowDistance(measured: number, wanted: number): number {
  if (measured === wanted) return 0;
  return measured === Number.POSITIVE_INFINITY ? 1 : 100;
}

function us(row: OperatorRow): number {
  return Number(row.latency) * US_PER_MS;
}

function unique<T extends number | string>(values: readonly T[]): T[] {
  return [...new Set(values)].sort((a, b) => (a < b ? -1 : 1));
}

function missing(what: string, there: readonly string[]): ProfileError {
  const known = there.length === 0 ? '' : `; they have ${there.join(', ')}`;
  return new ProfileError('CALIBRATION_TABLES', '', `times of ${what}`, `none in the tables${known}`);
}
