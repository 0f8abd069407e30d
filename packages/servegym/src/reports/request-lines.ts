import { REQUEST_COLUMNS, type RequestRow } from '@servegym/simulator';

/** Requests as lines of text: JSON when the file's name ends in `.jsonl`, CSV with a header otherwise. */
export function* requestLines(file: string, rows: Iterable<RequestRow>): Generator<string, void, void> {
  if (file.endsWith('.jsonl')) {
    for (const row of rows) yield `${JSON.stringify(row)}\n`;
    return;
  }
  yield `${REQUEST_COLUMNS.join(',')}\n`;
  for (const row of rows) yield `${REQUEST_COLUMNS.map((column) => row[column] ?? '').join(',')}\n`;
}
