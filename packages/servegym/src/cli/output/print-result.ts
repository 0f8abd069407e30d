import { alignedRows, type Column, tableOf } from '@servegym/operators/report';

export type { Column };

export interface Form<Result> {
  /** The object of `--json`; without it, that is the result. */
  json?(result: Result): unknown;
  /** Text for people. */
  text(result: Result): string;
}

export function printResult<Result>(isJson: boolean, result: Result, { json, text }: Form<Result>): void {
  console.log(isJson ? JSON.stringify(json === undefined ? result : json(result), null, 2) : text(result));
}

/** Columns of the names, also where all are shorter. */
const LEAST_WIDTH = 13;

/** Names with their values, a line each; those without a value are left out. */
export function facts(
  rows: readonly (readonly [name: string, value: string | null | undefined | false])[],
  leastWidth = LEAST_WIDTH,
): string[] {
  const given = rows.filter(([, value]) => value !== undefined && value !== null && value !== false);
  const width = Math.max(leastWidth, ...given.map(([name]) => name.length + 1));
  return given.map(([name, value]) => `${name.padEnd(width)} ${value}`);
}

/** Rows below the headings of their columns, aligned. `more` are rows below them, cell by cell. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  more: readonly (readonly string[])[] = [],
): string[] {
  const { names, rows: cells } = tableOf('', rows, columns);
  return alignedRows([names, ...cells, ...more]);
}
