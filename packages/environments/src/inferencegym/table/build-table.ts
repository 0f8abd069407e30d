import { EnvironmentError } from '@servegym/openenv/definition';
import {
  acceptanceTable,
  Engine,
  type EngineProfile,
  engineOptionsOf,
  msFromTicks,
  RandomStream,
  TICKS_PER_MS,
  TICKS_PER_S,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { KEY_COLUMNS, PROMPT_LENGTHS, TABLE_COLUMNS, TABLE_GRID, type TableColumn } from './table-columns.ts';

/** `quant_tier` as precisions of the weights. */
const TIERS: readonly WeightPrecision[] = ['FP16', 'INT8', 'INT4'];
/** Cells are kept to this many significant digits: more would be the simulator's, not a measurement's. */
const DIGITS = 5;
const GB_PER_GIB = 2 ** 30 / 1e9;

export interface TableBuildOptions {
  /** Memory of each GPU that the server may use, GB. Default 40, or the whole GPU where that is less. */
  readonly memoryGb?: number;
  /** Price of a GPU, USD an hour. Default the profile's. */
  readonly usdPerHour?: number;
  /** Mean output of the load, tokens. Default 256. */
  readonly outputTokens?: number;
  /** Called after each row. */
  readonly onRow?: (done: number, planned: number) => void;
}

/** A row of a trace table. */
export type TableRow = Readonly<Record<TableColumn, number>>;

/** A configuration of the grid: one value for each key column. */
export type GridPoint = Readonly<Record<(typeof KEY_COLUMNS)[number], number>>;

/** Measures a profile's trace table on the simulator, row by row. */
export class TableBuilder {
  readonly profile: EngineProfile;
  readonly memoryGb: number;
  readonly usdPerHour: number;
  readonly outputTokens: number;

  /** @throws EnvironmentError when the profile lacks what the table needs, or its weights do not fit. */
  constructor(profile: EngineProfile, options: TableBuildOptions = {}) {
    this.profile = profile;
    this.memoryGb = options.memoryGb ?? Math.min(40, profile.gpu.memoryGiB * GB_PER_GIB);
    this.usdPerHour = options.usdPerHour ?? profile.gpu.usdPerHour;
    this.outputTokens = options.outputTokens ?? 256;
    if (this.memoryGb > profile.gpu.memoryGiB * GB_PER_GIB) {
      throw new EnvironmentError(
        'MEMORY_ABOVE_GPU',
        `expected at most ${(profile.gpu.memoryGiB * GB_PER_GIB).toFixed(1)} GB of memory, which is what ${profile.gpu.name} has, got ${this.memoryGb}`,
      );
    }
    this.#requireFit();
  }

  /** All rows of the grid, in its order. */
  build(onRow?: TableBuildOptions['onRow']): TableRow[] {
    const points = gridPoints();
    return points.map((point, done) => {
      const row = this.measure(point);
      onRow?.(done + 1, points.length);
      return row;
    });
  }

  measure(point: GridPoint): TableRow {
    const { profile } = this;
    const weights = TIERS[point.quant_tier];
    const memory = tableMemory(profile, this.memoryGb, {
      weights,
      batchSize: point.batch_size,
      kvBudget: point.kv_budget,
      speculationDepth: point.spec_length,
      leastTokens: this.#longestRequest,
    });
    const measured = measurePoint(profile, {
      weights,
      maxNumSeqs: point.batch_size,
      kvBlocks: memory.kvBlocks,
      speculationDepth: point.spec_length,
      promptTokens: PROMPT_LENGTHS[point.prompt_len_bucket],
      outputTokens: this.outputTokens,
    });
    // Whoever shares the GPU pays for the part of its memory that this server does not hold.
    const share = memory.usedGb / (profile.gpu.memoryGiB * GB_PER_GIB);
    const centsPerSecond = (this.usdPerHour * profile.gpu.count * share * 100) / 3600;
    return {
      ...point,
      ttft_p50_ms: rounded(measured.ttftP50Ms),
      ttft_p99_ms: rounded(measured.ttftP99Ms),
      tpot_ms: rounded(measured.tpotMs),
      tps: rounded(measured.tps),
      gpu_mem_gb: rounded(memory.usedGb),
      cost_per_1k: rounded((centsPerSecond / measured.tps) * 1000),
    };
  }

  /** The key-value metadata of the file. */
  metadata(): Readonly<Record<string, string>> {
    const { profile } = this;
    const survival = profile.speculation?.survival.sharegpt ?? [];
    const rates = TABLE_GRID.spec_length
      .filter((depth) => depth > 0 && depth <= survival.length)
      .map((depth) => {
        const accepted = survival.slice(0, depth).reduce((sum, share) => sum + share, 0);
        return [depth, rounded(accepted / depth)];
      });
    return {
      profile: profile.name,
      source: profile.source,
      engine: `${profile.engine.name} ${profile.engine.version}, simulated`,
      command: `servegym table build --profile ${profile.name}`,
      memory_limit_gb: String(rounded(this.memoryGb)),
      usd_per_gpu_hour: String(this.usdPerHour),
      output_tokens: String(this.outputTokens),
      kv_bytes_per_token: String(profile.model.kvBytesPerToken / profile.gpu.count),
      reload_seconds: String(profile.reloadSeconds),
      spec_accept_rates: JSON.stringify(Object.fromEntries(rates)),
    };
  }

  /** Tokens of the longest prompt with the longest answer, and some to spare. */
  get #longestRequest(): number {
    return PROMPT_LENGTHS[PROMPT_LENGTHS.length - 1] + 2 * this.outputTokens;
  }

  #requireFit(): void {
    const { profile, memoryGb } = this;
    const deepest = Math.max(...TABLE_GRID.spec_length);
    if (profile.speculation === null || (profile.speculation.survival.sharegpt?.length ?? 0) < deepest) {
      throw new EnvironmentError(
        'NO_DRAFT_MODEL',
        `expected a profile with a draft model and its acceptance up to depth ${deepest}; ${profile.name} has none. Others are listed by \`servegym profile list\``,
      );
    }
    const missing = TIERS.filter((tier) => profile.weights[tier] === undefined);
    if (missing.length > 0) {
      throw new EnvironmentError(
        'MISSING_PRECISION',
        `expected a profile with ${TIERS.join(', ')}; ${profile.name} lacks ${missing.join(', ')}`,
      );
    }
    const whole = { weights: 'FP16', batchSize: 1, kvBudget: 1, speculationDepth: 0 } as const;
    const { kvBlocks } = tableMemory(profile, memoryGb, { ...whole, leastTokens: 0 });
    const tokens = kvBlocks * profile.memory.blockTokens;
    if (tokens >= this.#longestRequest) return;
    throw new EnvironmentError(
      'MEMORY_TOO_SMALL',
      `expected memory for one request of ${this.#longestRequest} tokens; within ${memoryGb.toFixed(1)} GB of each ${profile.gpu.name}, ${profile.name} leaves room for ${tokens}. Allow more with --memory, or take another profile`,
    );
  }
}

/** Every combination of the grid. */
export function gridPoints(): GridPoint[] {
  let points: Partial<Record<keyof GridPoint, number>>[] = [{}];
  for (const column of [
    'quant_tier',
    'spec_length',
    'kv_budget',
    'prompt_len_bucket',
    'batch_size',
  ] as const) {
    points = points.flatMap((point) => TABLE_GRID[column].map((value) => ({ ...point, [column]: value })));
  }
  return points as GridPoint[];
}

function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}

const GIB = 2 ** 30;
/**
 * Bytes that sampling takes for each position and entry of the vocabulary: logits and probabilities in FP32 and the
 * 64-bit indices of a sort.
 */
const SAMPLER_BYTES_PER_ENTRY = 4 + 4 + 8;
/** Entries of the vocabulary of Llama 3. */
const VOCABULARY = 128_256;
/** Sequences that the pool of `kv_budget` 1 leaves sampling memory for. */
const SEQUENCES_PROVIDED_FOR = 32;
/** Share of the memory that a pool of `kv_budget` 1 leaves free beside that. */
const SLACK = 0.002;

/** Parts of the memory that a configuration may use, GB (10^9 bytes). */
interface TableMemory {
  readonly kvBlocks: number;
  readonly usedGb: number;
}

/**
 * The KV pool and the memory of a configuration. `kvBudget` is a share of what weights and activations leave of
 * `limitGb`; the draft model and the sampler's buffers, which grow with the batch and the speculation, come on top, so
 * that a large pool beside a large batch does not fit.
 */
function tableMemory(
  profile: EngineProfile,
  limitGb: number,
  configuration: {
    readonly weights: WeightPrecision;
    readonly batchSize: number;
    readonly kvBudget: number;
    readonly speculationDepth: number;
    /** The pool holds at least this many tokens, whatever its budget. */
    readonly leastTokens: number;
  },
): TableMemory {
  const { weights, batchSize, kvBudget, speculationDepth, leastTokens } = configuration;
  const fixedGb = ((weightVariant(profile, weights).weightGiB + profile.memory.overheadGiB) * GIB) / 1e9;
  const poolGb = (limitGb * (1 - SLACK) - fixedGb - samplerGb(SEQUENCES_PROVIDED_FOR, 0)) * kvBudget;
  const blockBytes = (profile.model.kvBytesPerToken * profile.memory.blockTokens) / profile.gpu.count;
  const leastBlocks = Math.ceil(leastTokens / profile.memory.blockTokens);
  const kvBlocks = Math.max(leastBlocks, Math.floor((poolGb * 1e9) / blockBytes));
  const draftGb =
    speculationDepth > 0 && profile.speculation !== null ? (profile.speculation.draftGiB * GIB) / 1e9 : 0;
  return {
    kvBlocks,
    usedGb: fixedGb + draftGb + (kvBlocks * blockBytes) / 1e9 + samplerGb(batchSize, speculationDepth),
  };
}

function samplerGb(batchSize: number, speculationDepth: number): number {
  return (batchSize * (1 + speculationDepth) * VOCABULARY * SAMPLER_BYTES_PER_ENTRY) / 1e9;
}

/** Writes rows as Parquet, with how they were measured as key-value metadata. The same rows give the same bytes. */
export function encodeTable(
  rows: readonly TableRow[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const isWhole = (column: string) => KEY_COLUMNS.includes(column as never) && column !== 'kv_budget';
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: TABLE_COLUMNS.map((name) => ({
        name,
        data: rows.map((row) => row[name]),
        type: isWhole(name) ? 'INT32' : 'DOUBLE',
        nullable: false,
      })),
      kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
      rowGroupSize: rows.length,
      createdBy: 'servegym',
    }),
  );
}

/** A configuration and a load to measure. */
interface PointToMeasure {
  readonly weights: WeightPrecision;
  /** Most sequences that run at once. */
  readonly maxNumSeqs: number;
  readonly kvBlocks: number;
  readonly speculationDepth: number;
  /** Every prompt has this many tokens. */
  readonly promptTokens: number;
  /** Mean output, tokens; outputs are uniform from half of it to one and a half. */
  readonly outputTokens: number;
}

/** Measurements of a load generator. */
interface MeasuredPoint {
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly tpotMs: number;
  /** Output tokens a second. */
  readonly tps: number;
}

/** Clients wait this long before they send the next request: as often as the load generator looks, ticks. */
const LOOK_TICKS = 10 * TICKS_PER_MS;
/** Generations of requests that are measured after the first, which only fills the server. */
const GENERATIONS = 2;
const FEWEST_REQUESTS = 48;

/**
 * Measures a configuration as a load generator does: `maxNumSeqs` clients, each of which sends its next request when the
 * last is answered; fewer where the KV pool holds fewer, since the others would only wait for one another.
 */
function measurePoint(profile: EngineProfile, point: PointToMeasure): MeasuredPoint {
  const { promptTokens, outputTokens, speculationDepth } = point;
  const engine = new Engine(
    {
      law: weightVariant(profile, point.weights).law,
      maxNumSeqs: point.maxNumSeqs,
      kvBlocks: point.kvBlocks,
      schedulingPolicy: 'fcfs',
      speculationDepth,
      speculation: profile.speculation,
      survival: speculationDepth > 0 ? acceptanceTable(profile, 'sharegpt') : [],
    },
    // The table of the environment keeps its results: measured without look-ahead slots.
    { ...engineOptionsOf(profile, false), drafter: 'ngram' },
  );
  const random = new RandomStream(0, 'output lengths');
  const held = (point.kvBlocks * profile.memory.blockTokens) / (promptTokens + outputTokens / 2);
  const clients = Math.max(1, Math.min(point.maxNumSeqs, Math.floor(held)));
  let sent = 0;
  const send = (output: number) => {
    engine.submit({ id: sent, arrival: Math.max(0, engine.now), input: promptTokens, output });
    sent++;
  };
  const halfOutput = Math.max(1, Math.round(outputTokens / 2));
  // The first generation ends at all times, so that the clients do not march in step.
  for (let client = 0; client < clients; client++) send(random.integer(1, outputTokens + halfOutput));

  const wanted = Math.max(FEWEST_REQUESTS, GENERATIONS * clients);
  let seen = 0;
  let tokens = 0;
  let start = 0;
  const ttft: number[] = [];
  let tpotSum = 0;
  while (ttft.length < wanted) {
    engine.runUntil(engine.now + LOOK_TICKS);
    const { completions } = engine;
    const warm = seen >= clients;
    for (let i = 0; i < completions.count; i++) {
      seen++;
      send(random.integer(halfOutput, outputTokens + halfOutput));
      if (!warm) continue;
      ttft.push(msFromTicks(completions.firstTokens[i] - completions.arrivals[i]));
      const gaps = Math.max(1, completions.outputs[i] - 1);
      tpotSum += msFromTicks(completions.lastTokens[i] - completions.firstTokens[i]) / gaps;
    }
    if (warm) tokens += engine.counters.outputTokens;
    else start = engine.now;
    engine.clearLogs();
  }
  const sorted = Float64Array.from(ttft).sort();
  return {
    ttftP50Ms: percentileOfSorted(sorted, 50),
    ttftP99Ms: percentileOfSorted(sorted, 99),
    tpotMs: tpotSum / ttft.length,
    tps: (tokens * TICKS_PER_S) / (engine.now - start),
  };
}
