import {
  escapeText,
  horizontalGrid,
  px,
  scaleFromZero,
  svgDocument,
  tickLabels,
} from '@servegym/operators/report';
import type { BatchResult } from './session-batch.ts';

const WIDTH = 720;
const PANEL_HEIGHT = 180;
const MARGIN = { top: 56, right: 24, bottom: 44, left: 64 };
const GAP = 44;
const TICKS = 4;
const COLOURS = { grid: '#ddd', faint: '#444' };

interface Line {
  readonly name: string;
  readonly colour: string;
  /** `null` where there is nothing to draw. */
  readonly at: (batch: BatchResult) => number | null;
}

interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
  /** End of the axis. Default: the largest value. */
  readonly top?: number;
}

const PANELS: readonly Panel[] = [
  {
    title: 'time of a request, s',
    lines: [
      { name: 'p99', colour: '#d1495b', at: ({ total }) => total && total.p99 / 1000 },
      { name: 'p50', colour: '#1a5fd0', at: ({ total }) => total && total.p50 / 1000 },
    ],
  },
  {
    title: 'requests/s',
    lines: [{ name: 'requests/s', colour: '#1a5fd0', at: (batch) => batch.requestsPerS }],
  },
  {
    title: 'success, %',
    lines: [
      { name: 'success', colour: '#2e8b57', at: ({ succeeded, sessions }) => (100 * succeeded) / sessions },
    ],
    top: 100,
  },
];

/** The batches of a benchmark as SVG, over the number of sessions on a logarithmic axis. */
export function concurrencyPlotSvg(title: string, batches: readonly BatchResult[]): string {
  const sorted = batches.toSorted((a, b) => a.sessions - b.sessions);
  const low = Math.log2(sorted[0].sessions);
  const span = Math.log2(sorted.at(-1)!.sessions) - low || 1;
  const x = (sessions: number) =>
    MARGIN.left + ((Math.log2(sessions) - low) / span) * (WIDTH - MARGIN.left - MARGIN.right);
  const height = MARGIN.top + PANELS.length * PANEL_HEIGHT + (PANELS.length - 1) * GAP + MARGIN.bottom;
  const panels = PANELS.map((panel, index) =>
    drawPanel(panel, sorted, x, MARGIN.top + index * (PANEL_HEIGHT + GAP)),
  );
  return svgDocument(WIDTH, height, '#fff', [
    `<text x="${MARGIN.left}" y="24" font-size="15" fill="#111">${escapeText(title)}</text>`,
    ...panels,
    ...tickLabels({ ticks: sorted.map(({ sessions }) => sessions), at: x }, height - MARGIN.bottom, COLOURS),
    `<text x="${(MARGIN.left + WIDTH - MARGIN.right) / 2}" y="${height - 8}" text-anchor="middle" fill="#444">sessions at once</text>`,
  ]);
}

function drawPanel(
  { title, lines, top }: Panel,
  batches: readonly BatchResult[],
  x: (sessions: number) => number,
  upper: number,
): string {
  const lower = upper + PANEL_HEIGHT;
  const values = lines.flatMap((line) => batches.flatMap((batch) => line.at(batch) ?? []));
  const largest = top ?? (Math.max(0, ...values) || 1);
  const y = scaleFromZero(largest, TICKS, [lower, upper]);
  const grid = horizontalGrid(y, [MARGIN.left, WIDTH - MARGIN.right], COLOURS);
  const drawn = lines.map((line) => drawLine(line, batches, x, y.at));
  const legend =
    lines.length < 2
      ? ''
      : lines
          .map(
            ({ name, colour }, i) =>
              `<text x="${WIDTH - MARGIN.right - 40 * i}" y="${upper - 8}" text-anchor="end" fill="${colour}">${name}</text>`,
          )
          .join('');
  return `<text x="${MARGIN.left}" y="${upper - 8}" fill="#444">${title}</text>${legend}\n${[...grid, ...drawn].join('\n')}`;
}

function drawLine(
  { colour, at }: Line,
  batches: readonly BatchResult[],
  x: (sessions: number) => number,
  y: (value: number) => number,
): string {
  const points = batches.flatMap((batch) => {
    const value = at(batch);
    return value === null ? [] : [`${px(x(batch.sessions))} ${px(y(value))}`];
  });
  if (points.length === 0) return '';
  const dots = points.map((point) => {
    const [cx, cy] = point.split(' ');
    return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`;
  });
  return `<path d="M${points.join('L')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}`;
}
