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
