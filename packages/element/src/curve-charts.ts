import { type LineChart, lineChart, percent, timeText } from './line-chart.ts';
import type { CurvePoint, LoadCurve } from './load-curve.ts';

/** Bounds of the p99, ms. */
export interface Bounds {
  readonly ttft: number;
  readonly tpot: number;
}

type Chart = Pick<LineChart, 'title' | 'text' | 'logarithmic' | 'limit' | 'range'> & {
  readonly lines: readonly {
    readonly name: string;
    readonly look: 'median' | 'tail';
    readonly of: (point: CurvePoint) => number;
  }[];
};

export const usdText = (usd: number) => `$${usd < 1 ? usd.toPrecision(2) : usd.toFixed(2)}`;
export const rateText = (rate: number) => String(Number(rate.toPrecision(3)));

/** What the times of a profile rest on, by its status. */
export const RESTS_ON = { measured: 'measured', tables: 'kernel tables', estimated: 'data sheets' } as const;
/** Headings of `valueRows`. */
export const VALUES =
  'requests/s, TTFT p50, TTFT p99, TPOT p50, TPOT p99, KV mean, KV peak, USD/M tokens'.split(', ');
/** The points of a curve as texts. */
export const valueRows = ({ points }: LoadCurve): string[][] =>
  points.map(({ rate, ttft, tpot, kvMean, kvPeak, usdPerMillionTokens }) => [
    ...[rateText(rate), timeText(ttft.p50), timeText(ttft.p99), timeText(tpot.p50), timeText(tpot.p99)],
    ...[percent(kvMean), percent(kvPeak), usdText(usdPerMillionTokens)],
  ]);

/** The charts of a curve, as SVG with classes for the style sheet. */
export function curveCharts(curve: LoadCurve, bounds: Bounds): string[] {
  const percentiles = (of: 'ttft' | 'tpot'): Chart['lines'] => [
    { name: 'p50', look: 'median', of: (point) => point[of].p50 },
    { name: 'p99', look: 'tail', of: (point) => point[of].p99 },
  ];
  const charts: Chart[] = [
    {
      ...{ title: 'Time to first token (TTFT)', logarithmic: true, text: timeText },
      ...{ lines: percentiles('ttft'), limit: bounds.ttft },
    },
    {
      ...{ title: 'Time per output token (TPOT)', logarithmic: true, text: timeText },
      ...{ lines: percentiles('tpot'), limit: bounds.tpot },
    },
    {
      ...{ title: 'KV cache in use', text: percent, range: [0, 1] as const },
      lines: [
        { name: 'mean', look: 'median', of: (point) => point.kvMean },
        { name: 'peak', look: 'tail', of: (point) => point.kvPeak },
      ],
    },
    {
      ...{ title: 'USD per million tokens', logarithmic: true, text: usdText },
      lines: [{ name: 'prompt and answer', look: 'median', of: (point) => point.usdPerMillionTokens }],
    },
  ];
  return charts.map((chart) => curveChart(chart, curve));
}

function curveChart({ lines, ...chart }: Chart, curve: LoadCurve): string {
  const { at, breaking } = curve;
  // What lies far behind the breaking point would press the rest together.
  const most = 1.2 * Math.max(breaking?.rate ?? 0, curve.points.at(-1)!.servedRate);
  const points = curve.points.filter(({ rate }) => rate <= most);
  const values = lines.map(({ name, of }) => `${name} ${chart.text(of(at))}`);
  const [from, to] = [curve.points[0]!, curve.points.at(-1)!].map(({ rate }) => rateText(rate));
  return lineChart({
    ...chart,
    xs: points.map(({ rate }) => rate),
    xName: 'requests/s',
    lines: lines.map(({ of, ...line }) => ({ ...line, values: points.map(of) })),
    upright: breaking?.rate,
    dots: { x: at.rate, values: lines.map(({ of }) => of(at)) },
    label: `${chart.title} from ${from} to ${to} requests/s. At ${rateText(at.rate)} requests/s: ${values.join(', ')}.`,
  });
}
