import { REQUEST_COLUMNS, type RequestRow } from '@servegym/simulator';
import { parquetWriteBuffer } from 'hyparquet-writer';

const WHOLE: readonly string[] = ['request', 'input_tokens', 'output_tokens', 'priority'];

/** Requests as a file of the kind that its name ends in: `.jsonl`, `.parquet`, or CSV with a header otherwise. */
export function requestFile(file: string, rows: Iterable<RequestRow>): Iterable<string | Uint8Array> {
  if (file.endsWith('.parquet')) return [parquet([...rows])];
  return file.endsWith('.jsonl') ? jsonLines(rows) : csvLines(rows);
}

function* jsonLines(rows: Iterable<RequestRow>): Generator<string, void, void> {
  for (const row of rows) yield `${JSON.stringify(row)}\n`;
}

function* csvLines(rows: Iterable<RequestRow>): Generator<string, void, void> {
  yield `${REQUEST_COLUMNS.join(',')}\n`;
  for (const row of rows) yield `${REQUEST_COLUMNS.map((column) => row[column] ?? '').join(',')}\n`;
}

function parquet(rows: readonly RequestRow[]): Uint8Array {
  const columnData = REQUEST_COLUMNS.map((name) => ({
    name,
    data: rows.map((row) => row[name]),
    type: WHOLE.includes(name) ? ('INT32' as const) : ('DOUBLE' as const),
    nullable: name === 'tpot_ms',
  }));
  return new Uint8Array(parquetWriteBuffer({ columnData, createdBy: 'servegym' }));
}
