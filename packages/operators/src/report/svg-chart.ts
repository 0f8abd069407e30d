/** Values of an axis, and their pixels. */
export interface Scale {
  readonly ticks: readonly number[];
  at(value: number): number;
}

/** Interval of pixels along an axis. */
type Span = readonly [from: number, to: number];

/** A linear scale from zero to the first of at most `count` + 1 round ticks that is not below `largest`. */
export function scaleFromZero(largest: number, count: number, [from, to]: Span): Scale {
  const step = tickStep(largest / count);
  const end = step * Math.ceil(largest / step - 1e-9);
  return {
    ticks: Array.from({ length: Math.round(end / step) + 1 }, (_, i) => Number((i * step).toPrecision(12))),
    at: (value) => from + (value / end) * (to - from),
  };
}

interface GridColours {
  readonly grid: string;
  readonly faint: string;
}

/** A line at each tick of a vertical axis, with its number at the left. */
export function horizontalGrid(
  y: Scale,
  [left, right]: Span,
  { grid, faint }: GridColours,
  text: (tick: number) => string = String,
): string[] {
  return y.ticks.map(
    (tick) =>
      `<path d="M${left} ${px(y.at(tick))}H${right}" stroke="${grid}"/><text x="${left - 8}" y="${px(y.at(tick) + 4)}" text-anchor="end" fill="${faint}">${text(tick)}</text>`,
  );
}

/** The numbers of a horizontal axis, below it. */
export function tickLabels(
  x: Scale,
  bottom: number,
  { faint }: Pick<GridColours, 'faint'>,
  text: (tick: number) => string = String,
): string[] {
  return x.ticks.map(
    (tick) =>
      `<text x="${px(x.at(tick))}" y="${bottom + 18}" text-anchor="middle" fill="${faint}">${text(tick)}</text>`,
  );
}

/** An SVG document on a background. */
export function svgDocument(width: number, height: number, paper: string, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">
<rect width="${width}" height="${height}" fill="${paper}"/>
${parts.join('\n')}
</svg>
`;
}

/** A coordinate, pixels. */
export function px(value: number): string {
  return value.toFixed(1);
}

/** Text for SVG and HTML, in elements and in quoted attributes. */
export function escapeText(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;');
}

/** Distance of ticks: the least of 1, 2, 5, 10, 20, ... (and their tenths, hundredths, ...) that is not below `least`. */
function tickStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9))! * power;
}
