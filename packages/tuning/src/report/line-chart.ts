/** A point of a line. */
export interface ChartPoint {
  readonly x: number;
  readonly y: number;
}

/** Contents of a chart, and names of its axes. */
interface LineChart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** From left to right. */
  readonly points: readonly ChartPoint[];
}

const WIDTH = 720;
const HEIGHT = 400;
const MARGIN = { top: 44, right: 20, bottom: 48, left: 60 };
/** Weight of a new point in the smoothed line. */
const SMOOTHING = 0.2;

/** A noisy line as SVG: every point, and a smoothed line. Readable on light and dark pages. */
export function lineChartSvg({ title, xLabel, yLabel, points }: LineChart): string {
  const values = points.length === 0 ? [0] : points.map((point) => point.y);
  const x = axis([0, points.at(-1)?.x ?? 1], [MARGIN.left, WIDTH - MARGIN.right]);
  const y = axis([Math.min(...values), Math.max(...values)], [HEIGHT - MARGIN.bottom, MARGIN.top]);
  const path = (line: readonly ChartPoint[]) =>
    line.map((point, i) => `${i === 0 ? 'M' : 'L'}${px(x.at(point.x))} ${px(y.at(point.y))}`).join('');
  const bottom = HEIGHT - MARGIN.bottom;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${MARGIN.left}" y="24" font-size="15" fill="#111">${escapeText(title)}</text>
${y.ticks.map((tick) => `<path d="M${MARGIN.left} ${px(y.at(tick))}H${WIDTH - MARGIN.right}" stroke="#ddd"/><text x="${MARGIN.left - 8}" y="${px(y.at(tick) + 4)}" text-anchor="end" fill="#444">${tick}</text>`).join('\n')}
${x.ticks.map((tick) => `<text x="${px(x.at(tick))}" y="${bottom + 18}" text-anchor="middle" fill="#444">${tick.toLocaleString('en-US')}</text>`).join('\n')}
<text x="${(MARGIN.left + WIDTH - MARGIN.right) / 2}" y="${HEIGHT - 10}" text-anchor="middle" fill="#444">${escapeText(xLabel)}</text>
<text transform="translate(14 ${(MARGIN.top + bottom) / 2}) rotate(-90)" text-anchor="middle" fill="#444">${escapeText(yLabel)}</text>
<path d="${path(points)}" fill="none" stroke="#9bbcf2"/>
<path d="${path(smoothed(points))}" fill="none" stroke="#1a5fd0" stroke-width="2"/>
</svg>
`;
}

function smoothed(points: readonly ChartPoint[]): ChartPoint[] {
  let mean = points[0]?.y ?? 0;
  return points.map(({ x, y }) => {
    mean += SMOOTHING * (y - mean);
    return { x, y: mean };
  });
}

/** A linear scale from `domain` to pixels, with round ticks inside the domain. */
function axis([low, high]: readonly [number, number], [start, end]: readonly [number, number]) {
  const span = high - low || 1;
  const step = tickStep(span / 5);
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(Number((k * step).toPrecision(12)));
  return { ticks, at: (value: number) => start + ((value - low) / span) * (end - start) };
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
export function tickStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9))! * power;
}
