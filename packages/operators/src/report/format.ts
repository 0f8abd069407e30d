/** A point of a plot; `mark` is one character. */
interface ScatterPoint {
  readonly x: number;
  readonly y: number;
  readonly mark: string;
}

/** Most steps between named values of the horizontal axis. */
const X_TICKS = 4;

/** Points on a plane of characters, x on a logarithmic axis, y from zero. Later points cover earlier ones. */
export function terminalScatter(
  points: readonly ScatterPoint[],
  { columns, rows, label }: { columns: number; rows: number; label: (value: number) => string },
): string[] {
  const shown = points.filter(({ x, y }) => Number.isFinite(x) && x > 0 && Number.isFinite(y));
  if (shown.length === 0) return [];
  const xs = shown.map(({ x }) => Math.log(x));
  const low = Math.min(...xs);
  const span = Math.max(...xs) - low || 1;
  const top = Math.max(...shown.map(({ y }) => y)) || 1;
  const plane = Array.from({ length: rows }, () => new Array<string>(columns).fill(' '));
  for (const { x, y, mark } of shown) {
    const column = Math.round(((Math.log(x) - low) / span) * (columns - 1));
    const row = rows - 1 - Math.round((y / top) * (rows - 1));
    plane[row][column] = mark;
  }
  // Rows that name a value: top, middle and bottom, where there are rows between them.
  const named = new Map([
    [0, top],
    [rows - 1, 0],
    ...(rows % 2 === 1 && rows > 3 ? [[(rows - 1) / 2, top / 2] as const] : []),
  ]);
  const width = Math.max(...[...named.values()].map((value) => label(value).length));
  const lines = plane.map((cells, row) => {
    const value = named.get(row);
    const name = value === undefined ? '' : label(value);
    return `${name.padStart(width)} ${value === undefined ? '│' : '┤'}${cells.join('')}`.trimEnd();
  });
  const steps = Math.max(1, Math.min(X_TICKS, Math.floor(columns / 14)));
  const axis = new Array<string>(columns).fill('─');
  let names = '';
  for (let step = 0; step <= steps; step++) {
    const column = Math.round((step / steps) * (columns - 1));
    const name = label(Math.exp(low + (span * column) / (columns - 1)));
    axis[column] = '┬';
    // The name stands in the middle below its tick, inside the plot.
    const from = Math.max(0, Math.min(columns - name.length, column - (name.length >> 1)));
    names = `${names.padEnd(from)}${name}`;
  }
  return [...lines, `${' '.repeat(width)} └${axis.join('')}`, `${' '.repeat(width + 2)}${names}`];
}

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

/** Lines for what does not always hold. */
export function linesIf(holds: unknown, ...lines: readonly string[]): readonly string[] {
  return holds ? lines : [];
}
