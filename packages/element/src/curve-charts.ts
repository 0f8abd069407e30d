import type { CurvePoint, LoadCurve } from './load-curve.ts';

/** Bounds of the p99, ms. */
export interface Bounds {
  readonly ttft: number;
  readonly tpot: number;
}

interface Chart {
  readonly title: string;
  readonly logarithmic?: boolean;
  readonly text: (value: number) => string;
  readonly lines: readonly {
    readonly name: string;
    readonly look: 'median' | 'tail';
    readonly of: (point: CurvePoint) => number;
  }[];
  readonly limit?: number;
}

const [WIDTH, HEIGHT] = [360, 190];
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 12, 30, 34];

/** A time in the unit that suits it. */
export function timeText(ms: number): string {
  return ms >= 1000 ? `${Number((ms / 1000).toPrecision(3))}\u00a0s` : `${Number(ms.toPrecision(3))}\u00a0ms`;
}
const percent = (share: number) => `${Math.round(100 * share)} %`;
export const usdText = (usd: number) => `$${usd < 1 ? usd.toPrecision(2) : usd.toFixed(2)}`;
export const rateText = (rate: number) => String(Number(rate.toPrecision(3)));

export const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

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
      ...{ title: 'KV cache in use', text: percent },
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
  return charts.map((chart) => chartSvg(chart, curve));
}

function chartSvg({ title, lines, text, limit, logarithmic }: Chart, curve: LoadCurve): string {
  // What lies far behind the breaking point would press the rest together.
  const most = 1.2 * Math.max(curve.breaking?.rate ?? 0, curve.points.at(-1)!.servedRate);
  const points = curve.points.filter(({ rate }) => rate <= most);
  const last = points.at(-1)!.rate;
  const values = lines.flatMap(({ of }) => points.map(of)).filter((value) => value > 0);
  const low = logarithmic ? Math.min(...values, limit ?? Number.POSITIVE_INFINITY) / 1.2 : 0;
  const high = logarithmic ? Math.max(...values, limit ?? 0) * 1.2 : 1;
  const place = (value: number) =>
    logarithmic ? Math.log(value / low) / Math.log(high / low) : value / high;
  const atX = (rate: number) => (LEFT + (rate / last) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const atY = (value: number) => (HEIGHT - BOTTOM - place(value) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
  const across = (y: string) => `M${LEFT} ${y}H${WIDTH - RIGHT}`;
  const up = (x: string) => `M${x} ${TOP}V${HEIGHT - BOTTOM}`;
  const grid = (logarithmic ? marks(low, high) : [0, 0.25, 0.5, 0.75, 1]).map(
    (y) =>
      `<path class="grid" d="${across(atY(y))}"/><text x="${LEFT - 5}" y="${Number(atY(y)) + 4}" text-anchor="end">${text(y)}</text>`,
  );
  const step = roundStep(last / 5);
  const ticks = Array.from({ length: Math.floor(last / step) + 1 }, (_, i) => i * step).map(
    (x) =>
      `<text x="${atX(x)}" y="${HEIGHT - BOTTOM + 15}" text-anchor="middle">${Number(x.toPrecision(6))}</text>`,
  );
  const drawn = lines.map(({ look, of }) => {
    const there = points.filter((point) => of(point) > 0);
    return `<path class="${look}" d="M${there.map((point) => `${atX(point.rate)} ${atY(of(point))}`).join('L')}"/>`;
  });
  const { at, breaking } = curve;
  const dots = lines.flatMap(({ look, of }) =>
    at.rate <= last && of(at) > 0
      ? [`<circle class="${look}" cx="${atX(at.rate)}" cy="${atY(of(at))}" r="4"/>`]
      : [],
  );
  let x = WIDTH - RIGHT;
  const legend = lines.toReversed().map(({ name, look }) => {
    x -= 6.2 * name.length + 26;
    return `<path class="${look}" d="M${x} 14h12"/><text x="${x + 16}" y="18">${name}</text>`;
  });
  return `<svg class="curve" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label(title, lines, text, curve)}">
<text class="title" x="0" y="18">${title}</text>${legend.join('')}${grid.join('')}${ticks.join('')}
<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 4}" text-anchor="middle">requests/s</text>
${limit === undefined ? '' : `<path class="limit" d="${across(atY(limit))}"/>`}
${breaking === null ? '' : `<path class="breaking" d="${up(atX(breaking.rate))}"/>`}
${drawn.join('')}${dots.join('')}</svg>`;
}

/** A chart in a sentence. */
function label(title: string, lines: Chart['lines'], text: Chart['text'], curve: LoadCurve): string {
  const values = lines.map(({ name, of }) => `${name} ${text(of(curve.at))}`);
  const from = curve.points[0].rate;
  return `${title} from ${rateText(from)} to ${rateText(curve.points.at(-1)!.rate)} requests/s. At ${rateText(curve.at.rate)} requests/s: ${values.join(', ')}.`;
}

/** 1, 2 and 5 times the powers of ten of a range, or the powers alone where it is wide. */
function marks(low: number, high: number): number[] {
  const leads = high / low > 200 ? [1] : [1, 2, 5];
  const powers = Array.from({ length: 40 }, (_, i) => 10 ** (i - 20));
  return powers
    .flatMap((power) => leads.map((lead) => Number((lead * power).toPrecision(6))))
    .filter((mark) => mark >= low && mark <= high);
}

/** A step of 1, 2 or 5 times a power of ten, at least `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((lead) => lead * power >= least * (1 - 1e-9))!;
}
