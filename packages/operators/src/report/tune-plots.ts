import { candidateText, vllmDefaults } from '../tune/candidate.ts';
import type { LoadCurvePoint, TuneResult } from '../tune/tune-result.ts';
import {
  escapeText,
  horizontalGrid,
  logScale,
  px,
  type Scale,
  scaleFromZero,
  svgDocument,
  tickLabels,
} from './svg-chart.ts';
import { figure } from './tune-figures.ts';

/** Colours of a drawing; on a page they are variables of its style sheet. */
export interface PlotColours {
  readonly ink: string;
  readonly faint: string;
  readonly grid: string;
  readonly paper: string;
  readonly first: string;
  readonly second: string;
  readonly warning: string;
}

export const PAPER_COLOURS: PlotColours = {
  ink: '#16202c',
  faint: '#5b6773',
  grid: '#dfe4ea',
  paper: '#ffffff',
  first: '#0b6bcb',
  second: '#b4540a',
  warning: '#c02f3f',
};

interface Frame {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Room for the name of a point or a line. */
const LABEL_WIDTH = 150;

const FRAME: Frame = { width: 640, height: 360, left: 56, right: 20, top: 32, bottom: 46 };

/** The settings to choose from: sustained load against TTFT, with the Pareto front. */
export function frontSvg(
  { front, candidates, profile }: TuneResult,
  colours: PlotColours = PAPER_COLOURS,
): string {
  const points = front.filter(({ ttftP99Ms, sustained }) => ttftP99Ms > 0 && sustained > 0);
  const marks = candidates.filter(({ isDefault }, i) => isDefault || i === 0);
  const x = logScale(
    [...points, ...marks].map(({ ttftP99Ms }) => ttftP99Ms),
    [FRAME.left, FRAME.width - FRAME.right],
  );
  const y = fromZero([
    ...points.map(({ sustained }) => sustained),
    ...marks.map(({ heldOut }) => heldOut.interval.high),
  ]);
  const tpots = points.map(({ tpotP99Ms }) => tpotP99Ms);
  const [least, most] = [Math.min(...tpots), Math.max(...tpots)];
  const dots = points
    .toSorted((a, b) => Number(a.onFront) - Number(b.onFront))
    .map((point) => {
      const size =
        3.5 + 5 * (most === least ? 0 : Math.log(point.tpotP99Ms / least) / Math.log(most / least) || 0);
      const style = point.onFront
        ? `fill="${colours.first}" fill-opacity="0.75" stroke="${colours.paper}"`
        : `fill="none" stroke="${colours.faint}" stroke-opacity="0.5"`;
      const title = `${candidateText(point.candidate, vllmDefaults(profile))}: sustains ${figure(point.sustained)} requests/s, TTFT p99 ${figure(point.ttftP99Ms)} ms, TPOT p99 ${figure(point.tpotP99Ms)} ms`;
      return `<circle cx="${px(x.at(point.ttftP99Ms))}" cy="${px(y.at(point.sustained))}" r="${px(size)}" ${style}><title>${escapeText(title)}</title></circle>`;
    });
  const named = marks.map(({ ttftP99Ms, heldOut, isDefault }) => {
    const [cx, cy] = [x.at(ttftP99Ms), y.at(heldOut.value)];
    const colour = isDefault ? colours.second : colours.first;
    const anchor = cx > FRAME.width - LABEL_WIDTH ? 'end' : 'start';
    return [
      `<path d="M${px(cx)} ${px(y.at(heldOut.interval.low))}V${px(y.at(heldOut.interval.high))}" stroke="${colour}" stroke-width="2"/>`,
      `<rect x="${px(cx - 5)}" y="${px(cy - 5)}" width="10" height="10" fill="${colour}" stroke="${colours.paper}" transform="rotate(45 ${px(cx)} ${px(cy)})"/>`,
      `<text x="${px(cx + (anchor === 'end' ? -12 : 12))}" y="${px(cy + 4)}" text-anchor="${anchor}" fill="${colour}" font-weight="600">${isDefault ? 'vLLM’s defaults' : 'chosen'}</text>`,
    ].join('');
  });
  return frame(
    [...gridLines(x, y, colours), ...dots, ...named, frontLegend(colours)],
    {
      x: 'TTFT p99 at the reference load, ms, logarithmic (larger dots: larger TPOT)',
      y: 'sustained requests/s',
    },
    colours,
  );
}

/** Meaning of filled and hollow dots, at the top right. */
function frontLegend({ first, faint, paper }: PlotColours): string {
  const right = FRAME.width - FRAME.right;
  return [
    `<circle cx="${right - 216}" cy="12" r="4.5" fill="${first}" fill-opacity="0.75" stroke="${paper}"/>`,
    `<text x="${right - 206}" y="16" fill="${faint}">on the Pareto front</text>`,
    `<circle cx="${right - 78}" cy="12" r="4.5" fill="none" stroke="${faint}"/>`,
    `<text x="${right - 68}" y="16" fill="${faint}">other settings</text>`,
  ].join('');
}

/** Share of the SLO that is used up over the load, for the winner and the defaults. */
export function loadCurveSvg({ curves }: TuneResult, colours: PlotColours = PAPER_COLOURS): string {
  const both = [...curves.winner, ...curves.defaults];
  const x = fromZero(
    both.map(({ rate }) => rate),
    FRAME.left,
    FRAME.width - FRAME.right,
  );
  const y = fromZero([0, 100]);
  const line = (points: readonly LoadCurvePoint[], colour: string, name: string) => {
    if (points.length === 0) return '';
    const path = points.map(({ rate, good }) => `${px(x.at(rate))} ${px(y.at(100 * good))}`).join('L');
    const dots = points.map(
      ({ rate, good, sloUse }) =>
        `<circle cx="${px(x.at(rate))}" cy="${px(y.at(100 * good))}" r="3.5" fill="${sloUse <= 1 ? colour : colours.paper}" stroke="${colour}" stroke-width="1.5"><title>${figure(rate)} requests/s: ${figure(100 * good)} % within every limit</title></circle>`,
    );
    const last = points.findLast(({ good }) => good > 0.5) ?? points[0];
    const [anchor, away] = x.at(last.rate) < FRAME.left + LABEL_WIDTH ? ['start', 8] : ['end', -8];
    return `<path d="M${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}<text x="${px(x.at(last.rate) + away)}" y="${px(y.at(100 * last.good) + 22)}" text-anchor="${anchor}" fill="${colour}" font-weight="600">${name}</text>`;
  };
  return frame(
    [
      ...gridLines(x, y, colours),
      line(curves.defaults, colours.second, 'vLLM’s defaults'),
      line(curves.winner, colours.first, 'chosen'),
    ],
    { x: 'requests/s of one engine (filled: the SLO holds)', y: 'requests within every limit, %' },
    colours,
  );
}

/** The sustained loads of the finalists with their intervals. */
export function intervalsSvg(
  { candidates, profile }: TuneResult,
  colours: PlotColours = PAPER_COLOURS,
): string {
  const rowHeight = 30;
  const left = 40;
  const height = candidates.length * rowHeight + 56;
  const x = fromZero(
    candidates.flatMap(({ heldOut, searched }) => [heldOut.interval.high, searched.interval.high]),
    left,
    FRAME.width - FRAME.right,
  );
  const grid = [
    ...x.ticks.map((tick) => `<path d="M${px(x.at(tick))} 8V${height - 40}" stroke="${colours.grid}"/>`),
    ...tickLabels(x, height - 42, colours, figure),
  ];
  const rows = candidates.map(({ heldOut, searched, isDefault, candidate }, i) => {
    const at = 8 + (i + 0.5) * rowHeight;
    const colour = isDefault ? colours.second : colours.first;
    const bar = (low: number, high: number, dy: number, opacity: number) =>
      `<path d="M${px(x.at(low))} ${px(at + dy)}H${px(x.at(high))}" stroke="${colour}" stroke-width="3" stroke-opacity="${opacity}" stroke-linecap="round"/>`;
    const dot = (value: number, dy: number, filled: boolean) =>
      `<circle cx="${px(x.at(value))}" cy="${px(at + dy)}" r="4" fill="${filled ? colour : colours.paper}" stroke="${colour}" stroke-width="1.5"/>`;
    return [
      `<text x="${left - 10}" y="${px(at + 4)}" text-anchor="end" fill="${colours.ink}">${isDefault ? 'D' : i + 1}</text>`,
      `<g><title>${escapeText(candidateText(candidate, isDefault ? undefined : vllmDefaults(profile)))}</title>`,
      bar(searched.interval.low, searched.interval.high, -4, 0.35),
      dot(searched.value, -4, false),
      bar(heldOut.interval.low, heldOut.interval.high, 5, 0.9),
      dot(heldOut.value, 5, true),
      '</g>',
    ].join('');
  });
  return svgDocument(FRAME.width, height, colours.paper, [
    ...grid,
    ...rows,
    `<text x="${(left + FRAME.width) / 2}" y="${height - 6}" text-anchor="middle" fill="${colours.faint}">sustained requests/s: filled on unseen traffic, hollow on that of the search</text>`,
  ]);
}

function fromZero(values: readonly number[], from = FRAME.height - FRAME.bottom, to = FRAME.top): Scale {
  return scaleFromZero(Math.max(...values, 1e-9), 5, [from, to]);
}

function gridLines(x: Scale, y: Scale, colours: PlotColours): string[] {
  const bottom = FRAME.height - FRAME.bottom;
  return [
    ...horizontalGrid(y, [FRAME.left, FRAME.width - FRAME.right], colours, figure),
    ...x.ticks.map(
      (tick) => `<path d="M${px(x.at(tick))} ${FRAME.top}V${bottom}" stroke="${colours.grid}"/>`,
    ),
    ...tickLabels(x, bottom, colours, figure),
  ];
}

function frame(parts: readonly string[], axes: { x: string; y: string }, colours: PlotColours): string {
  const middle = (FRAME.left + FRAME.width - FRAME.right) / 2;
  return svgDocument(FRAME.width, FRAME.height, colours.paper, [
    ...parts,
    `<text x="${middle}" y="${FRAME.height - 8}" text-anchor="middle" fill="${colours.faint}">${axes.x}</text>`,
    `<text x="${FRAME.left}" y="16" fill="${colours.faint}">${axes.y}</text>`,
  ]);
}
