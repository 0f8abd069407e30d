import { decades, escaped, roundTicks } from '@servegym/operators/report';

/** A line of a chart: a value for each x. */
interface Line {
  readonly name: string;
  readonly look: 'median' | 'tail' | 'third';
  readonly values: readonly number[];
}

export interface LineChart {
  readonly title: string;
  readonly xs: readonly number[];
  /** What stands below the axis. */
  readonly xName: string;
  readonly lines: readonly Line[];
  readonly text: (value: number) => string;
  /** Logarithmic; values that are not positive are left out. */
  readonly logarithmic?: boolean;
  /** Ends of the axis. Default: 0 and what the values need. */
  readonly range?: readonly [number, number];
  /** A value that is not to be exceeded. */
  readonly limit?: number | undefined;
  /** An x to mark. */
  readonly upright?: number | undefined;
  /** Points to mark: an x, and a value for each line. */
  readonly dots?: { readonly x: number; readonly values: readonly number[] };
  /** The chart in a sentence. */
  readonly label: string;
}

const [WIDTH, HEIGHT] = [360, 190];
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 12, 30, 34];

/** A time in the unit that suits it. */
export function timeText(ms: number): string {
  return ms >= 1000 ? `${Number((ms / 1000).toPrecision(3))}\u00a0s` : `${Number(ms.toPrecision(3))}\u00a0ms`;
}
export const percent = (share: number) => `${Math.round(100 * share)}\u00a0%`;

/** A table as HTML, of plain text. */
export function htmlTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;
  return `<table>${row(heads, 'th')}${rows.map((cells) => row(cells, 'td')).join('')}</table>`;
}

/** A chart as SVG, with classes for the style sheet. */
export function lineChart(chart: LineChart): string {
  const { title, xs, xName, lines, text, logarithmic, limit, upright, dots } = chart;
  const last = xs.at(-1) ?? 1;
  const values = lines.flatMap((line) => line.values).filter((value) => !logarithmic || value > 0);
  const [low, high] = logarithmic
    ? [
        Math.min(...values, limit ?? (values.length === 0 ? 1 : Number.POSITIVE_INFINITY)) / 1.2,
        Math.max(...values, limit ?? (values.length === 0 ? 10 : 0)) * 1.2,
      ]
    : (chart.range ?? [Math.min(0, ...values), Math.max(0, ...values) || 1]);
  const place = (value: number) =>
    logarithmic ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const atX = (x: number) => (LEFT + (x / last) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const atY = (value: number) => (HEIGHT - BOTTOM - place(value) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
  const across = (y: string) => `M${LEFT} ${y}H${WIDTH - RIGHT}`;
  const up = (x: string) => `M${x} ${TOP}V${HEIGHT - BOTTOM}`;
  const grid = (logarithmic ? decades([low, high]) : roundTicks([low, high])).map(
    (y) =>
      `<path class="grid" d="${across(atY(y))}"/><text x="${LEFT - 5}" y="${Number(atY(y)) + 4}" text-anchor="end">${xs.length === 0 ? '' : text(y)}</text>`,
  );
  const ticks = roundTicks([0, last])
    .filter((x) => !xs.every(Number.isInteger) || (xs.length > 0 && Number.isInteger(x)))
    .map((x) => `<text x="${atX(x)}" y="${HEIGHT - BOTTOM + 15}" text-anchor="middle">${x}</text>`);
  const isThere = (value: number) => !logarithmic || value > 0;
  const drawn = lines.map((line) => {
    const there = line.values.flatMap((value, i) => (isThere(value) ? [`${atX(xs[i]!)} ${atY(value)}`] : []));
    return there.length === 0 ? '' : `<path class="${line.look}" d="M${there.join('L')}"/>`;
  });
  const marked = lines.flatMap(({ look }, i) =>
    dots && dots.x <= last && isThere(dots.values[i]!)
      ? [`<circle class="${look}" cx="${atX(dots.x)}" cy="${atY(dots.values[i]!)}" r="4"/>`]
      : [],
  );
  let x = WIDTH - RIGHT;
  const legend = lines.toReversed().map(({ name, look }) => {
    x -= 6.2 * name.length + 26;
    return `<path class="${look}" d="M${x} 14h12"/><text x="${x + 16}" y="18">${name}</text>`;
  });
  return `<svg class="curve" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(chart.label)}">
<text class="title" x="0" y="18">${title}</text>${legend.join('')}${grid.join('')}${ticks.join('')}
<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 4}" text-anchor="middle">${xName}</text>
${limit === undefined ? '' : `<path class="limit" d="${across(atY(limit))}"/>`}
${upright === undefined ? '' : `<path class="breaking" d="${up(atX(upright))}"/>`}
${drawn.join('')}${marked.join('')}</svg>`;
}
