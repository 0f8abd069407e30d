import { forEachCsvRecord } from '@servegym/simulator';
import { ProfileError } from '../schema/read-json.ts';

export class CsvRow<Column extends string> {
  readonly #fields: ReadonlyMap<string, string>;
  readonly #place: string;

  constructor(fields: ReadonlyMap<string, string>, place: string) {
    this.#fields = fields;
    this.#place = place;
  }

  text(column: Column): string {
    return this.#fields.get(column)!;
  }

  /** @throws {ProfileError} for a field that is no number, too low, or no whole number. */
  number(column: Column, { from = 0, isWhole = false, isAboveZero = false } = {}): number {
    const text = this.text(column);
    const value = text === '' ? Number.NaN : Number(text);
    const isRight = value >= from && value < Infinity && !(isAboveZero && value === 0);
    if (isRight && (!isWhole || Number.isInteger(value))) return value;
    const expected = `a ${isWhole ? 'whole ' : ''}number ${isAboveZero ? 'above 0' : `from ${from}`}`;
    throw wrongRecord(this.#place, `${column} to be ${expected}`, text);
  }
}

/**
 * Reads a table in CSV with these columns, in any order; case does not matter, and further columns are ignored.
 *
 * @throws {ProfileError} with the file and line that is wrong.
 */
export function readCsv<const Column extends string>(
  text: string,
  source: string,
  columns: readonly Column[],
): CsvRow<Column>[] {
  const rows: CsvRow<Column>[] = [];
  let header: readonly string[] | undefined;
  const malformed = (line: number, got: string) =>
    wrongRecord(`${source}:${line}`, 'comma-separated values', got);
  forEachCsvRecord(text, 1, malformed, (fields, line) => {
    const place = `${source}:${line}`;
    const trimmed = fields.map((field) => field.trim());
    if (header === undefined) {
      header = trimmed.map((name) => name.toLowerCase());
      const missing = columns.filter((name) => !header!.includes(name));
      if (missing.length > 0) throw wrongRecord(place, `the columns ${columns.join(', ')}`, fields.join(','));
    } else if (trimmed.length !== header.length) {
      throw wrongRecord(place, `${header.length} fields, as the header has`, fields.join(','));
    } else {
      rows.push(new CsvRow(new Map(header.map((name, i) => [name, trimmed[i]])), place));
    }
  });
  return rows;
}

function wrongRecord(place: string, expected: string, got: string): ProfileError {
  return new ProfileError('CALIBRATION_FILE', place, expected, `"${got}"`);
}
