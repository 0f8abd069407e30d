/** A point of a plot; `mark` is one character. */
export interface ScatterPoint {
  readonly x: number;
  readonly y: number;
  readonly mark: string;
}

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
  const axis = [label(top), label(0)];
  const width = Math.max(...axis.map((text) => text.length));
  const lines = plane.map((cells, row) => {
    const name = row === 0 ? axis[0] : row === rows - 1 ? axis[1] : '';
    return `${name.padStart(width)} │${cells.join('')}`.trimEnd();
  });
  const [from, to] = [label(Math.exp(low)), label(Math.exp(low + span))];
  return [
    ...lines,
    `${' '.repeat(width)} └${'─'.repeat(columns)}`,
    `${' '.repeat(width + 2)}${from}${to.padStart(columns - from.length)}`,
  ];
}
