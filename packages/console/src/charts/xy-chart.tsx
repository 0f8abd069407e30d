import { useSignal } from '@preact/signals';
import type { Chart, ChartAxis, Unit } from '@servegym/operators/report';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { amount, count, dollars, latencyTick, percent } from '../components/format.ts';
import { aroundLog, type Domain, decades, fromZero, roundTicks } from './scales.ts';

/** How the numbers of an axis are written. */
const UNITS: Readonly<Record<Unit, (value: number) => string>> = {
  ...{ plain: String, amount, count, dollars, latency: latencyTick, percent },
};

export const CHART_WIDTH = 640;
const HEIGHT = 320;
const [RIGHT, TOP, BOTTOM] = [16, 16, 44];
/** Height of a line of the small text, and width of one of its characters. */
const [ROW, CHARACTER] = [18, 7];

interface SvgProps {
  readonly chart: Chart;
  readonly width: number;
  /** Style sheet and title of a drawing that stands alone. */
  readonly style?: string;
  readonly title?: string;
}

/** Draws a chart. */
export function XYChartSvg({ chart, width, style, title }: SvgProps): JSX.Element {
  const { label, lines = [], dots = [], legend = [], height = HEIGHT } = chart;
  const drawn = [...lines.flatMap(({ points }) => points), ...dots.map((dot) => [dot.x, dot.y] as const)];
  const x = axisOf(
    chart.x,
    drawn.map(([at]) => at),
  );
  const y = axisOf(
    chart.y,
    drawn.map(([, at]) => at),
  );
  const titleHeight = title === undefined ? 0 : 24;
  const legendHeight = legend.length === 0 ? 0 : ROW;
  const top = TOP + titleHeight + legendHeight + (y.title === '' ? 0 : ROW);
  const left = 14 + CHARACTER * Math.max(6, ...y.ticks.map((tick) => y.text(tick).length));
  const atX = scale(x, left, width - RIGHT);
  const atY = scale(y, height - BOTTOM, top);
  return (
    <svg
      class="xy"
      xmlns="http://www.w3.org/2000/svg"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      {style !== undefined && <style>{style}</style>}
      {style !== undefined && <rect class="paper" width={width} height={height} />}
      {title !== undefined && (
        <text class="title" x={8} y={20}>
          {title}
        </text>
      )}
      <Legend legend={legend} y={titleHeight + 12} />
      {y.ticks.map((tick) => (
        <g key={tick}>
          <path d={`M${left} ${atY(tick)}H${width - RIGHT}`} class="grid" />
          <text x={left - 6} y={atY(tick) + 4} text-anchor="end">
            {y.text(tick)}
          </text>
        </g>
      ))}
      {x.ticks.map((tick) => (
        <text key={tick} x={atX(tick)} y={height - BOTTOM + 18} text-anchor="middle">
          {x.text(tick)}
        </text>
      ))}
      <text x={(left + width - RIGHT) / 2} y={height - 6} text-anchor="middle">
        {x.title}
      </text>
      {y.title !== '' && (
        <text x={8} y={top - 12}>
          {y.title}
        </text>
      )}
      {lines
        .filter(({ points }) => points.length > 0)
        .map(({ look, points, thick, title: name }, i) => (
          <path
            key={i}
            class={thick ? `${look} thick` : look}
            d={`M${points.map(([px, py]) => `${round(atX(px))} ${round(atY(py))}`).join('L')}`}
          >
            {name !== undefined && <title>{name}</title>}
          </path>
        ))}
      {dots.map(({ x: px, y: py, look, radius, hollow, title: name, text }) => (
        <g key={`${name} ${px} ${py}`}>
          <circle
            class={hollow ? `${look} hollow` : look}
            cx={round(atX(px))}
            cy={round(atY(py))}
            r={round(radius)}
          >
            <title>{name}</title>
          </circle>
          {text !== undefined && (
            <text
              class={look}
              x={atX(px) + (atX(px) > width - 130 ? -10 : 10)}
              y={atY(py) + 4}
              text-anchor={atX(px) > width - 130 ? 'end' : 'start'}
            >
              {text}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

function Legend({ legend, y }: { legend: NonNullable<Chart['legend']>; y: number }): JSX.Element {
  let x = 8 - CHARACTER;
  return (
    <>
      {legend.map(({ look, hollow, text }) => {
        const at = x + CHARACTER;
        x = at + 14 + CHARACTER * text.length;
        return (
          <g key={text}>
            <circle class={hollow ? `${look} hollow` : look} cx={at + 5} cy={y - 4} r={4.5} />
            <text x={at + 14} y={y}>
              {text}
            </text>
          </g>
        );
      })}
    </>
  );
}

/** A chart as wide as what is around it. */
export function XYChartBox({ chart }: { chart: Chart }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(CHART_WIDTH);
  useEffect(() => {
    const sizes = new ResizeObserver(([entry]) => {
      width.value = Math.max(280, entry.contentRect.width);
    });
    sizes.observe(box.current!);
    return () => sizes.disconnect();
  }, [width]);
  return (
    <div class="xy-box" ref={box}>
      <XYChartSvg chart={chart} width={width.value} />
    </div>
  );
}

/** An axis with what it does not say itself: its ends, its ticks and how they are written. */
function axisOf(
  { title, unit = 'plain', logarithmic, names, ...axis }: ChartAxis,
  values: readonly number[],
) {
  const own = names && ([names.length - 0.5, -0.5] as const);
  const domain: Domain = axis.domain ?? own ?? (logarithmic ? aroundLog(values) : fromZero(values));
  const round = logarithmic ? decades(domain) : roundTicks(domain);
  const ticks = axis.ticks ?? names?.map((_, i) => i) ?? round;
  return { title, logarithmic, domain, ticks, text: names ? (at: number) => names[at] : UNITS[unit] };
}

/** Pixels of the values of an axis. Values that a logarithmic one has no place for stand at its start. */
function scale(
  { domain, logarithmic }: ReturnType<typeof axisOf>,
  from: number,
  to: number,
): (value: number) => number {
  const place = logarithmic
    ? (value: number) => Math.log(Math.max(domain[0], value))
    : (value: number) => value;
  const [low, high] = domain.map(place);
  return (value) => from + ((place(value) - low) / (high - low || 1)) * (to - from);
}

function round(pixels: number): number {
  return Math.round(10 * pixels) / 10;
}
