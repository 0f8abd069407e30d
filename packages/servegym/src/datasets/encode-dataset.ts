import { parquetWriteBuffer } from 'hyparquet-writer';
import type { DatasetRow, DatasetValue } from './record-episodes.ts';

const WHOLE = new Set(['episode_id', 'step']);

/** Writes rows as Parquet, with `metadata` as its key-value metadata. The same rows give the same bytes. */
export function encodeDataset(
  rows: readonly DatasetRow[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: names.map((name) => {
        const data = rows.map((row) => row[name] ?? null);
        return { name, data, type: columnType(name, data), nullable: data.includes(null) };
      }),
      kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
      createdBy: 'servegym',
    }),
  );
}

/** Figures are doubles though they be whole: the next file may have others. */
function columnType(name: string, data: readonly DatasetValue[]) {
  if (WHOLE.has(name)) return 'INT32';
  switch (typeof data.find((value) => value !== null)) {
    case 'string':
      return 'STRING';
    case 'boolean':
      return 'BOOLEAN';
    default:
      return 'DOUBLE';
  }
}
