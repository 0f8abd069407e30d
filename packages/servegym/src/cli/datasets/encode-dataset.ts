import type { DatasetRow, DatasetValue } from '@servegym/agents';
import { parquetWriteBuffer } from 'hyparquet-writer';

/** What is known of a file beside its rows. */
export interface DatasetFile {
  /** Written as key-value metadata. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Whether a column holds whole numbers only: they are then 64-bit integers. */
  readonly isWhole: (column: string) => boolean;
}

/** Writes rows as Parquet. The same rows give the same bytes. */
export function encodeDataset(rows: readonly DatasetRow[], { metadata, isWhole }: DatasetFile): Uint8Array {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: names.map((name) => {
        const values = rows.map((row) => row[name] ?? null);
        const type = isWhole(name) ? 'INT64' : typeOf(values);
        const data = type === 'INT64' ? values.map(wholeNumber) : values;
        return { name, data, type, nullable: values.includes(null) };
      }),
      kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
      createdBy: 'servegym',
    }),
  );
}

function wholeNumber(value: DatasetValue): bigint | null {
  return value === null ? null : BigInt(value as number);
}

/** Figures are doubles though they be whole: the next file may have others. */
function typeOf(values: readonly DatasetValue[]) {
  switch (typeof values.find((value) => value !== null)) {
    case 'string':
      return 'STRING';
    case 'boolean':
      return 'BOOLEAN';
    case 'object':
      return 'JSON';
    default:
      return 'DOUBLE';
  }
}
