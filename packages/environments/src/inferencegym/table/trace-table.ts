import { readFileSync } from 'node:fs';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { EnvironmentError } from '@servegym/openenv/definition';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { z } from 'zod';
import { requirePlayable } from './inspect-table.ts';
import {
  DEFAULT_CONDITIONS,
  PROMPT_LENGTHS,
  TABLE_COLUMNS,
  type TableColumn,
  type TableConditions,
  type TableRows,
  VALUE_COLUMNS,
  type ValueColumn,
} from './table-columns.ts';

/** Tiers of `quant_tier`. */
export const TIER_COUNT = 3;

/** Factors on the latencies of FP16 for tiers that a table lacks, as in InferenceGym. */
const TIER_LATENCY = [1, 0.82, 0.68];

/** Position of a value on an axis: its points `low` and `low + 1` weigh `1 - share` and `share`. */
export interface AxisPosition {
  low: number;
  share: number;
}

/**
 * Measurements of a server on a grid of configurations, in memory once for all who play it. Axes ascend; a column has the
 * cell (tier, speculation, KV, prompt, batch) at `(((tier * S + s) * K + k) * L + l) * B + b`.
 */
export class TraceTable {
  readonly batchSizes: Float64Array;
  readonly kvBudgets: Float64Array;
  readonly specLengths: Float64Array;
  /** Prompt lengths of the buckets that the table has, tokens. */
  readonly promptLengths: Float64Array;
  readonly conditions: TableConditions;
  readonly columns: Readonly<Record<ValueColumn, Float64Array>>;

  /** @throws EnvironmentError for a table that cannot be played */
  constructor(rows: TableRows) {
    requirePlayable(rows);
    const columns = rows.columns as Required<TableRows['columns']>;
    this.conditions = rows.conditions;
    this.batchSizes = axis(columns.batch_size);
    this.kvBudgets = axis(columns.kv_budget);
    this.specLengths = axis(columns.spec_length);
    const buckets = axis(columns.prompt_len_bucket);
    this.promptLengths = buckets.map((bucket) => PROMPT_LENGTHS[bucket]);

    const size = this.cell(TIER_COUNT, 0, 0, 0, 0);
    const filled = Object.fromEntries(VALUE_COLUMNS.map((name) => [name, new Float64Array(size)]));
    const hasTier = new Uint8Array(TIER_COUNT);
    for (let row = 0; row < rows.count; row++) {
      const tier = columns.quant_tier[row];
      hasTier[tier] = 1;
      const cell = this.cell(
        tier,
        this.specLengths.indexOf(columns.spec_length[row]),
        this.kvBudgets.indexOf(columns.kv_budget[row]),
        buckets.indexOf(columns.prompt_len_bucket[row]),
        this.batchSizes.indexOf(columns.batch_size[row]),
      );
      for (const name of VALUE_COLUMNS) filled[name][cell] = columns[name][row];
    }
    this.columns = filled as Record<ValueColumn, Float64Array>;
    for (let tier = 1; tier < TIER_COUNT; tier++) if (hasTier[tier] === 0) this.#deriveTier(tier);
  }

  /** Reads a Parquet file. @throws EnvironmentError */
  static async read(file: Uint8Array): Promise<TraceTable> {
    return new TraceTable(await readTableRows(file));
  }

  /** Index of a cell in a column. */
  cell(tier: number, spec: number, kv: number, prompt: number, batch: number): number {
    const { specLengths, kvBudgets, promptLengths, batchSizes } = this;
    return (
      (((tier * specLengths.length + spec) * kvBudgets.length + kv) * promptLengths.length + prompt) *
        batchSizes.length +
      batch
    );
  }

  /** Fills a tier that was not measured from FP16. */
  #deriveTier(tier: number): void {
    const factor = TIER_LATENCY[tier];
    const { columns } = this;
    const cellsOfTier = this.cell(1, 0, 0, 0, 0);
    for (let cell = 0; cell < cellsOfTier; cell++) {
      const to = tier * cellsOfTier + cell;
      columns.ttft_p50_ms[to] = columns.ttft_p50_ms[cell] * factor;
      columns.ttft_p99_ms[to] = columns.ttft_p99_ms[cell] * factor;
      columns.tpot_ms[to] = columns.tpot_ms[cell] * factor;
      columns.tps[to] = columns.tps[cell] / factor;
      columns.gpu_mem_gb[to] = columns.gpu_mem_gb[cell];
      columns.cost_per_1k[to] = columns.cost_per_1k[cell] * factor;
    }
  }
}

/** Writes where a value lies on an ascending axis; at the nearest end when it is outside. */
export function locate(points: Float64Array, value: number, position: AxisPosition): void {
  const last = points.length - 1;
  if (!(value > points[0])) {
    position.low = 0;
    position.share = 0;
    return;
  }
  let low = 0;
  while (low < last && points[low + 1] <= value) low++;
  position.low = low;
  position.share = low === last ? 0 : (value - points[low]) / (points[low + 1] - points[low]);
}

function axis(column: Float64Array): Float64Array {
  return Float64Array.from(new Set(column)).sort();
}

/** Made by `servegym table build --profile h100-80gb-llama-3-8b`. */
export const SHIPPED_TABLE_URL = new URL('./h100-80gb-llama-3-8b.parquet', import.meta.url);

let shipped: Promise<TraceTable> | undefined;

/** The table that comes with the package, read once. */
export function shippedTable(): Promise<TraceTable> {
  shipped ??= TraceTable.read(readFileSync(SHIPPED_TABLE_URL));
  return shipped;
}

/** Snappy, the usual one, is hyparquet's own. */
const COMPRESSORS = {
  GZIP: (bytes: Uint8Array) => new Uint8Array(gunzipSync(bytes)),
  BROTLI: (bytes: Uint8Array) => new Uint8Array(brotliDecompressSync(bytes)),
  ZSTD: (bytes: Uint8Array) => new Uint8Array(zstdDecompressSync(bytes)),
};

/** More rows than any grid needs: a file that has them is something else. */
const MOST_ROWS = 200_000;

/**
 * Reads the columns of a trace table from a Parquet file, without judging them. Columns that it does not know are left
 * alone.
 * @throws EnvironmentError `NOT_PARQUET` or `TOO_MANY_ROWS`
 */
export async function readTableRows(file: Uint8Array): Promise<TableRows> {
  // A view of a larger buffer would show hyparquet the bytes around it.
  const bytes = file.slice().buffer as ArrayBuffer;
  try {
    const metadata = parquetMetadata(bytes);
    const count = Number(metadata.num_rows);
    if (count > MOST_ROWS) {
      throw new EnvironmentError('TOO_MANY_ROWS', `Expected at most ${MOST_ROWS} rows, got ${count}`);
    }
    const present = TABLE_COLUMNS.filter((name) => metadata.schema.some((column) => column.name === name));
    const columns: Partial<Record<TableColumn, Float64Array>> = {};
    for (const column of present) columns[column] = new Float64Array(count);
    const rows = await parquetReadObjects({
      file: bytes,
      metadata,
      columns: present,
      compressors: COMPRESSORS,
    });
    for (const [at, row] of rows.entries()) {
      for (const column of present) {
        const value: unknown = row[column];
        const isNumber = typeof value === 'number' || typeof value === 'bigint';
        columns[column]![at] = isNumber ? Number(value) : Number.NaN;
      }
    }
    return { count, columns, conditions: readConditions(metadata.key_value_metadata ?? []) };
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new EnvironmentError('NOT_PARQUET', `Expected a Parquet file: ${(error as Error).message}`);
  }
}

function readConditions(
  entries: readonly { readonly key: string; readonly value?: string }[],
): TableConditions {
  const texts = new Map(entries.map(({ key, value }) => [key, value]));
  const positive = (key: string, otherwise: number) => {
    const value = Number(texts.get(key));
    return Number.isFinite(value) && value > 0 ? value : otherwise;
  };
  return {
    outputTokens: positive('output_tokens', DEFAULT_CONDITIONS.outputTokens),
    kvBytesPerToken: positive('kv_bytes_per_token', DEFAULT_CONDITIONS.kvBytesPerToken),
    memoryLimitGb: positive('memory_limit_gb', DEFAULT_CONDITIONS.memoryLimitGb),
    reloadSeconds: positive('reload_seconds', DEFAULT_CONDITIONS.reloadSeconds),
    specAcceptRates: readRates(texts.get('spec_accept_rates')),
  };
}

const acceptRates = z.record(z.string(), z.number().min(0).max(1));

/** Shares by depth; `null` when there are none, or they make no sense. */
function readRates(text = 'null'): TableConditions['specAcceptRates'] {
  try {
    return acceptRates.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
