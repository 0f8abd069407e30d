const EIGHTHS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/**
 * Values as columns of blocks, `rows` lines high, from zero to the largest, which the first line names.
 *
 * @param label Writes a value for the axis.
 */
export function terminalBars(
  values: readonly number[],
  { rows, label }: { readonly rows: number; readonly label: (value: number) => string },
): string[] {
  const top = Math.max(...values, 0);
  const axis = [label(top), label(0)];
  const width = Math.max(...axis.map((text) => text.length));
  return Array.from({ length: rows }, (_, row) => {
    const blocks = values.map((value) => {
      const eighths = top === 0 ? 0 : Math.round((8 * rows * value) / top) - 8 * (rows - 1 - row);
      return EIGHTHS[Math.min(8, Math.max(0, eighths))];
    });
    const name = row === 0 ? axis[0] : row === rows - 1 ? axis[1] : '';
    return `${name.padStart(width)} ${row === 0 || row === rows - 1 ? '┤' : '│'}${blocks.join('')}`.trimEnd();
  });
}

/** Lays out a table as lines: the first column to the left, the others to the right. */
export function alignedRows(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) =>
    Math.max(...rows.map((row) => (row[i] ?? '').length)),
  );
  return rows.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ')
      .trimEnd(),
  );
}

type SnakeName<Name extends string, Done extends string = ''> = string extends Name
  ? string
  : Name extends `${infer First}${infer Rest}`
    ? SnakeName<Rest, First extends Lowercase<First> ? `${Done}${First}` : `${Done}_${Lowercase<First>}`>
    : Done;

/** A type whose names in camelCase are in snake_case, at any depth. */
export type SnakeCase<T> = T extends readonly (infer Item)[]
  ? readonly SnakeCase<Item>[]
  : T extends object
    ? { readonly [Name in keyof T as Name extends string ? SnakeName<Name> : Name]: SnakeCase<T[Name]> }
    : T;

/** First letter of a word behind another; `FP16` has none. */
const CAPITAL = /(?<=[a-z0-9])[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])/g;

/** A value whose names in camelCase become snake_case, at any depth: `simulatedS` is `simulated_s`. */
export function snakeCase<T>(value: T): SnakeCase<T> {
  const convert = (each: unknown): unknown => {
    if (Array.isArray(each)) return each.map(convert);
    if (typeof each !== 'object' || each === null || ArrayBuffer.isView(each)) return each;
    return Object.fromEntries(
      Object.entries(each).map(([name, inner]) => [
        name.replace(CAPITAL, (letter) => `_${letter.toLowerCase()}`),
        convert(inner),
      ]),
    );
  };
  return convert(value) as SnakeCase<T>;
}

/** Three digits. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-';
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  return Number(value.toPrecision(3)).toString();
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** Lines, or other parts, for what does not always hold. */
export function linesIf<Part = string>(holds: unknown, ...parts: readonly Part[]): readonly Part[] {
  return holds ? parts : [];
}
