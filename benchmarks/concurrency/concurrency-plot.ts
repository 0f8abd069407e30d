import type { XYChart } from '../../packages/console/src/charts/xy-chart.tsx';
import { chartSvg } from '../../packages/servegym/src/cli/output/report-page.ts';
import type { BatchResult } from './session-batch.ts';

const WIDTH = 640;
const HEIGHT = 320;

interface Line {
  readonly name: string;
  readonly look: 'first' | 'second';
  /** `null` where there is nothing to draw. */
  readonly at: (batch: BatchResult) => number | null;
}

const PANELS: readonly (readonly [what: string, lines: readonly Line[]])[] = [
  [
    'time of a request, s',
    [
      { name: 'p99', look: 'second', at: ({ total }) => total && total.p99 / 1000 },
      { name: 'p50', look: 'first', at: ({ total }) => total && total.p50 / 1000 },
    ],
  ],
  ['requests/s', [{ name: 'requests/s', look: 'first', at: (batch) => batch.requestsPerS }]],
  [
    'success, %',
    [{ name: 'success', look: 'first', at: ({ succeeded, sessions }) => (100 * succeeded) / sessions }],
  ],
];

/** The batches of a benchmark as SVG, over the number of sessions on a logarithmic axis. */
export function concurrencyPlotSvg(title: string, batches: readonly BatchResult[]): string {
  const sorted = batches.toSorted((a, b) => a.sessions - b.sessions);
  const counts = sorted.map(({ sessions }) => sessions);
  const panels = PANELS.map(([what, lines], index) => {
    const drawn = lines.map(({ name, look, at }) => ({
      ...{ name, look },
      points: sorted.flatMap((batch): [number, number][] => {
        const value = at(batch);
        return value === null ? [] : [[batch.sessions, value]];
      }),
    }));
    const largest = Math.max(0, ...drawn.flatMap(({ points }) => points.map(([, value]) => value))) || 1;
    const chart: XYChart = {
      label: what,
      x: {
        ...{ title: 'sessions at once', logarithmic: true, ticks: counts, text: String },
        domain: [counts[0]!, counts.at(-1)!],
      },
      y: { title: what, domain: [0, largest], text: String },
      lines: drawn,
      dots: drawn.flatMap(({ name, look, points }) =>
        points.map(([x, y]) => ({ ...{ x, y, look, radius: 3 }, title: `${name} ${y}` })),
      ),
      legend: lines.length > 1 ? lines.map(({ name, look }) => ({ look, text: name })) : [],
      height: HEIGHT,
    };
    const svg = chartSvg(chart, index === 0 ? title : '');
    return svg.replace('<svg ', `<svg y="${index * HEIGHT}" `);
  });
  const height = PANELS.length * HEIGHT;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}">${panels.join('')}</svg>\n`;
}
