import { parquetWriteBuffer } from 'hyparquet-writer';
import type { TableRow } from './build-table.ts';
import { KEY_COLUMNS, TABLE_COLUMNS } from './table-columns.ts';

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
