import { escapeText, horizontalGrid, linearScale, px, svgDocument, tickLabels } from './svg-chart.ts';

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
  const [left, right] = [MARGIN.left, WIDTH - MARGIN.right];
  const [top, bottom] = [MARGIN.top, HEIGHT - MARGIN.bottom];
  const x = linearScale([0, points.at(-1)?.x ?? 1], [left, right]);
  const y = linearScale([Math.min(...values), Math.max(...values)], [bottom, top]);
  const path = (line: readonly ChartPoint[]) =>
    line.map((point, i) => `${i === 0 ? 'M' : 'L'}${px(x.at(point.x))} ${px(y.at(point.y))}`).join('');
  const colours = { grid: '#ddd', faint: '#444' };
  return svgDocument(WIDTH, HEIGHT, '#fff', [
    `<text x="${left}" y="24" font-size="15" fill="#111">${escapeText(title)}</text>`,
    ...horizontalGrid(y, [left, right], colours),
    ...tickLabels(x, bottom, colours, (tick) => tick.toLocaleString('en-US')),
    `<text x="${(left + right) / 2}" y="${HEIGHT - 10}" text-anchor="middle" fill="#444">${escapeText(xLabel)}</text>`,
    `<text transform="translate(14 ${(top + bottom) / 2}) rotate(-90)" text-anchor="middle" fill="#444">${escapeText(yLabel)}</text>`,
    `<path d="${path(points)}" fill="none" stroke="#9bbcf2"/>`,
    `<path d="${path(smoothed(points))}" fill="none" stroke="#1a5fd0" stroke-width="2"/>`,
  ]);
}

function smoothed(points: readonly ChartPoint[]): ChartPoint[] {
  let mean = points[0]?.y ?? 0;
  return points.map(({ x, y }) => {
    mean += SMOOTHING * (y - mean);
    return { x, y: mean };
  });
}
