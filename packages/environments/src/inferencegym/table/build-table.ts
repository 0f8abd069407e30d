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
/** Clients wait this long before they send the next request: as often as the load generator looks, ticks. */
const LOOK_TICKS = 10 * TICKS_PER_MS;
/** Generations of requests that are measured after the first, which only fills the server. */
const GENERATIONS = 2;
const FEWEST_REQUESTS = 48;
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

function samplerGb(batchSize: number, speculationDepth: number): number {
  return (batchSize * (1 + speculationDepth) * VOCABULARY * SAMPLER_BYTES_PER_ENTRY) / 1e9;
}

/** A row of a trace table. */
export type TableRow = Readonly<Record<TableColumn, number>>;

type GridPoint = Readonly<Record<(typeof KEY_COLUMNS)[number], number>>;

/** Measures a profile's trace table on the simulator, row by row. */
export class TableBuilder {
  readonly profile: EngineProfile;
  readonly memoryGb: number;
  readonly usdPerHour: number;
  readonly outputTokens: number;

  /**
   * @param limits memory of each GPU that the server may use, GB (40, or the whole GPU where that is less), price of a GPU, USD an
   *   hour (the profile's), and mean output of the load, tokens (256)
   * @throws EnvironmentError when the profile lacks what the table needs, or its weights do not fit.
   */
  constructor(
    profile: EngineProfile,
    limits: { memoryGb?: number; usdPerHour?: number; outputTokens?: number } = {},
  ) {
    this.profile = profile;
    this.memoryGb = limits.memoryGb ?? Math.min(40, profile.gpu.memoryGiB * GB_PER_GIB);
    this.usdPerHour = limits.usdPerHour ?? profile.gpu.usdPerHour;
    this.outputTokens = limits.outputTokens ?? 256;
    if (this.memoryGb > profile.gpu.memoryGiB * GB_PER_GIB) {
      throw new EnvironmentError(
        'MEMORY_ABOVE_GPU',
        `expected at most ${(profile.gpu.memoryGiB * GB_PER_GIB).toFixed(1)} GB of memory, which is what ${profile.gpu.name} has, got ${this.memoryGb}`,
      );
    }
    this.#requireFit();
  }

  /** All rows of the grid, in its order. `onRow` is called after each. */
  build(onRow?: (done: number, planned: number) => void): TableRow[] {
    const points = gridPoints();
    return points.map((point, done) => {
      const row = this.measure(point);
      onRow?.(done + 1, points.length);
      return row;
    });
  }

  measure(point: GridPoint): TableRow {
    const { profile } = this;
    const memory = this.#memory(point, this.#longestRequest);
    const measured = this.#load(point, memory.kvBlocks);
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
    const { kvBlocks } = this.#memory({ quant_tier: 0, batch_size: 1, kv_budget: 1, spec_length: 0 }, 0);
    const tokens = kvBlocks * profile.memory.blockTokens;
    if (tokens >= this.#longestRequest) return;
    throw new EnvironmentError(
      'MEMORY_TOO_SMALL',
      `expected memory for one request of ${this.#longestRequest} tokens; within ${memoryGb.toFixed(1)} GB of each ${profile.gpu.name}, ${profile.name} leaves room for ${tokens}. Allow more with --memory, or take another profile`,
    );
  }

  /**
   * The KV pool and the memory of a configuration, GB (10^9 bytes). `kv_budget` is a share of what weights and activations leave
   * of the memory; the draft model and the sampler's buffers, which grow with the batch and the speculation, come on top, so
   * that a large pool beside a large batch does not fit. The pool holds `leastTokens`, whatever its budget.
   */
  #memory(point: Omit<GridPoint, 'prompt_len_bucket'>, leastTokens: number) {
    const { profile, memoryGb } = this;
    const { batch_size: batchSize, spec_length: depth } = point;
    const fixedGiB = weightVariant(profile, TIERS[point.quant_tier]).weightGiB + profile.memory.overheadGiB;
    const fixedGb = (fixedGiB * GIB) / 1e9;
    const poolGb =
      (memoryGb * (1 - SLACK) - fixedGb - samplerGb(SEQUENCES_PROVIDED_FOR, 0)) * point.kv_budget;
    const blockBytes = (profile.model.kvBytesPerToken * profile.memory.blockTokens) / profile.gpu.count;
    const leastBlocks = Math.ceil(leastTokens / profile.memory.blockTokens);
    const kvBlocks = Math.max(leastBlocks, Math.floor((poolGb * 1e9) / blockBytes));
    const draftGb =
      depth > 0 && profile.speculation !== null ? (profile.speculation.draftGiB * GIB) / 1e9 : 0;
    return {
      kvBlocks,
      usedGb: fixedGb + draftGb + (kvBlocks * blockBytes) / 1e9 + samplerGb(batchSize, depth),
    };
  }

  /**
   * Measures a configuration as a load generator does: `batch_size` clients, each of which sends its next request when the
   * last is answered; fewer where the KV pool holds fewer, since the others would only wait for one another. Every prompt is as
   * long as its bucket says; outputs are uniform from half of the mean to one and a half.
   */
  #load(point: GridPoint, kvBlocks: number) {
    const { profile, outputTokens } = this;
    const { batch_size: maxNumSeqs, spec_length: speculationDepth } = point;
    const promptTokens = PROMPT_LENGTHS[point.prompt_len_bucket];
    const engine = new Engine(
      {
        law: weightVariant(profile, TIERS[point.quant_tier]).law,
        maxNumSeqs,
        kvBlocks,
        schedulingPolicy: 'fcfs',
        speculationDepth,
        speculation: profile.speculation,
        survival: speculationDepth > 0 ? acceptanceTable(profile, 'sharegpt') : [],
      },
      // The table of the environment keeps its results: measured without look-ahead slots.
      { ...engineOptionsOf(profile, false), drafter: 'ngram' },
    );
    const random = new RandomStream(0, 'output lengths');
    const held = (kvBlocks * profile.memory.blockTokens) / (promptTokens + outputTokens / 2);
    const clients = Math.max(1, Math.min(maxNumSeqs, Math.floor(held)));
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
