import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { EnvironmentError } from '@servegym/openenv/definition';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import {
  DEFAULT_CONDITIONS,
  TABLE_COLUMNS,
  type TableColumn,
  type TableConditions,
  type TableRows,
} from './table-columns.ts';

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
      for (const column of present) columns[column]![at] = numberOf(row[column]);
    }
    return { count, columns, conditions: readConditions(metadata.key_value_metadata ?? []) };
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new EnvironmentError('NOT_PARQUET', `Expected a Parquet file: ${(error as Error).message}`);
  }
}

function numberOf(cell: unknown): number {
  if (typeof cell === 'number') return cell;
  return typeof cell === 'bigint' ? Number(cell) : Number.NaN;
}

function readConditions(
  entries: readonly { readonly key: string; readonly value?: string }[],
): TableConditions {
  const texts = new Map(entries.map(({ key, value }) => [key, value]));
  const positive = (key: string, otherwise: number) => {
    const value = Number(texts.get(key) ?? Number.NaN);
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

/** Shares by depth; `null` when there are none, or they make no sense. */
function readRates(text: string | undefined): TableConditions['specAcceptRates'] {
  if (text === undefined) return null;
  try {
    const rates: unknown = JSON.parse(text);
    if (typeof rates !== 'object' || rates === null) return null;
    const entries = Object.entries(rates);
    return entries.every(([, rate]) => typeof rate === 'number' && rate >= 0 && rate <= 1)
      ? Object.fromEntries(entries)
      : null;
  } catch {
    return null;
  }
}
