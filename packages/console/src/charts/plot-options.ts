import { effect } from '@preact/signals';
import { decades } from '@servegym/operators/report';
import uPlot from 'uplot';
import type { ChartSpec, Limit, Trace } from './chart-spec.ts';
import { palette, type Tone } from './palette.ts';

/** Charts that share this key show their cursors together. */
const CURSOR_KEY = 'episode';
const stepBack = uPlot.paths.stepped!({ align: -1 });

/** A shorter drag is a click, CSS pixels. */
const LEAST_DRAG = 4;

/** The page around a plot. */
export interface PlotContext {
  /** Size of the small text, CSS pixels. */
  readonly textSize: number;
  /** The ends of the time axis. Reads the signal of the zoom. */
  readonly range: () => [number, number];
  /** The person drags over a part of the time axis. */
  readonly onZoom: (from: number, to: number) => void;
  readonly timeText: (value: number) => string;
  readonly onPoint: (index: number | null) => void;
  /** The person clicks on a window. */
  readonly onPick: (index: number) => void;
  /** The time that the page has been wound back to; `null`: it shows the newest. Reads signals. */
  readonly position: () => number | null;
}

export const tone = (name: Tone) => () => palette.peek()[name];

/** Options that every plot of an episode shares. */
export function baseOptions(context: PlotContext): Omit<uPlot.Options, 'series' | 'width' | 'height'> {
  return {
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false },
      sync: { key: CURSOR_KEY, setSeries: false },
      points: { size: 7, width: 0 },
    },
    scales: { x: { time: false, range: () => context.range() } },
    hooks: {
      init: [
        (plot) =>
          plot.over.addEventListener('click', () => {
            if (typeof plot.cursor.idx === 'number') context.onPick(plot.cursor.idx);
          }),
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < LEAST_DRAG) return;
          context.onZoom(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      setCursor: [(plot) => context.onPoint(plot.cursor.idx ?? null)],
    },
    plugins: [positionMark(context.position), rangeOf(context.range)],
  };
}

export function timeAxis(context: PlotContext): uPlot.Axis {
  return {
    ...axisLook(context),
    size: context.textSize * 1.9,
    space: context.textSize * 6,
    grid: { show: false },
    incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400],
    values: (_, splits) => splits.map(context.timeText),
  };
}

export function axisLook(context: PlotContext): Partial<uPlot.Axis> {
  return {
    stroke: tone('muted'),
    font: `${context.textSize}px Inter, system-ui, sans-serif`,
    gap: 6,
    grid: { stroke: tone('line'), width: 1 },
    ticks: { show: false },
  };
}

/** The options of a chart that draws `traces` of `spec` under `limits`. */
export function chartOptions(
  spec: ChartSpec,
  traces: readonly Trace[],
  limits: () => readonly Limit[],
  context: PlotContext,
): Omit<uPlot.Options, 'width' | 'height'> {
  const base = baseOptions(context);
  const hasRight = traces.some(({ series }) => series.axis === 'right');
  const bounds = () => limits().map(({ value }) => value);
  /** @param least width, in text sizes */
  const valueAxis = (scale: string, least: number, tick: (value: number) => string): uPlot.Axis => ({
    ...axisLook(context),
    scale,
    size: (_, labels) => context.textSize * Math.max(least, widest(labels) * 0.58 + 10 / context.textSize),
    space: context.textSize * 2.8,
    values: (_, splits) => splits.map((value) => (value === null ? '' : tick(value))),
  });
  const axes: uPlot.Axis[] = [
    timeAxis(context),
    {
      ...valueAxis('left', 3.2, spec.tick),
      ...(spec.levels && { splits: () => spec.levels!.map((_, level) => level) }),
      ...(spec.logarithmic && {
        splits: (_: uPlot, __: number, low: number, high: number) => decades([low, high]),
      }),
    },
  ];
  if (hasRight) {
    axes.push({ ...valueAxis('right', 2.4, spec.rightTick ?? String), side: 1, grid: { show: false } });
  }
  return {
    ...base,
    padding: [8, hasRight ? 0 : context.textSize * 2.1, 0, 0],
    scales: {
      ...base.scales,
      left: spec.logarithmic
        ? { distr: 3, log: 10, range: (_, low, high) => logRange(low, high, bounds()) }
        : {
            range: (_, low, high) =>
              spec.levels
                ? [-0.15, spec.levels.length - 0.85]
                : linearRange(low, high, bounds(), spec.signed === true),
          },
      right: { range: (_, low, high) => linearRange(low, high, [], spec.signed === true) },
    },
    axes,
    series: [{}, ...traces.map((trace) => seriesOptions(trace, context.textSize))],
    plugins: [limitLines(limits, context.textSize), ...base.plugins!],
  };
}

function seriesOptions({ series }: Trace, textSize: number): uPlot.Series {
  const color = tone(series.tone);
  const look: uPlot.Series = {
    scale: series.axis ?? 'left',
    stroke: color,
    width: textSize * 0.17,
    dash: series.dash ? [...series.dash] : undefined,
    points: { show: true, size: textSize * 0.28, width: 0, fill: color, filter: isolated },
  };
  switch (series.draw ?? 'line') {
    case 'line':
      return look;
    case 'dashed':
      return { ...look, dash: [textSize * 0.5, textSize * 0.4], width: textSize * 0.15 };
    case 'area':
      return { ...look, fill: () => `color-mix(in srgb, ${color()} 22%, transparent)` };
    case 'step':
      return { ...look, paths: stepBack, points: { show: false } };
    case 'layer':
      return { ...look, fill: color, fillTo: 0, width: 0, paths: stepBack, points: { show: false } };
  }
}

/** The values without a neighbour, which no line would show. */
function isolated(plot: uPlot, seriesIndex: number): number[] {
  const values = plot.data[seriesIndex];
  const indexes: number[] = [];
  for (let i = 0; i < values.length; i++) {
    if (values[i] != null && values[i - 1] == null && values[i + 1] == null) indexes.push(i);
  }
  return indexes;
}

/** Characters in the longest label. */
function widest(labels: readonly string[] | null): number {
  return Math.max(0, ...(labels ?? []).map((label) => label.length));
}

/** Holds the data from zero, the strictest limit, and those further limits that the data comes near to. */
function linearRange(
  low: number | null,
  high: number | null,
  limits: readonly number[],
  signed: boolean,
): uPlot.Range.MinMax {
  const highest = high ?? 0;
  const strictest = Math.min(...limits);
  const near = limits.filter((limit) => limit === strictest || limit < highest * 1.6);
  const top = Math.max(highest, ...near, 0);
  const bottom = signed ? Math.min(low ?? 0, 0) : 0;
  if (top === bottom) return [0, 1];
  const room = (top - bottom) * 0.08;
  return [bottom < 0 ? bottom - room : 0, top + room];
}

function logRange(low: number | null, high: number | null, limits: readonly number[]): uPlot.Range.MinMax {
  const values = [low, high, ...limits].filter((value): value is number => value !== null && value > 0);
  if (values.length === 0) return [10, 1000];
  return [Math.min(...values) / 1.6, Math.max(...values) * 1.6];
}

/** Draws each limit as a dashed line with its name, and tints what lies beyond, deeper with each. */
function limitLines(limits: () => readonly Limit[], textSize: number): uPlot.Plugin {
  return {
    hooks: {
      drawAxes(plot) {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.globalAlpha = 0.05;
        ctx.fillStyle = palette.peek().limit;
        for (const { value } of limits()) {
          const y = plot.valToPos(value, 'left', true);
          ctx.fillRect(bbox.left, bbox.top, bbox.width, Math.max(0, y - bbox.top));
        }
        ctx.restore();
      },
      draw(plot) {
        const { ctx, bbox } = plot;
        const ratio = devicePixelRatio;
        const colors = palette.peek();
        ctx.save();
        ctx.lineWidth = 1.25 * ratio;
        ctx.font = `500 ${(textSize - 1) * ratio}px Inter, system-ui, sans-serif`;
        ctx.textAlign = 'right';
        ctx.textBaseline = 'bottom';
        for (const { label, value } of limits()) {
          const y = Math.round(plot.valToPos(value, 'left', true));
          if (y < bbox.top) continue;
          ctx.strokeStyle = colors.limit;
          ctx.setLineDash([4 * ratio, 3 * ratio]);
          ctx.beginPath();
          ctx.moveTo(bbox.left, y);
          ctx.lineTo(bbox.left + bbox.width, y);
          ctx.stroke();
          ctx.setLineDash([]);
          ctx.lineJoin = 'round';
          ctx.lineWidth = 3 * ratio;
          ctx.strokeStyle = colors.surface;
          ctx.strokeText(label, bbox.left + bbox.width - 4 * ratio, y - 2 * ratio);
          ctx.lineWidth = 1.25 * ratio;
          ctx.fillStyle = colors.limit;
          ctx.fillText(label, bbox.left + bbox.width - 4 * ratio, y - 2 * ratio);
        }
        ctx.restore();
      },
    },
  };
}

/**
 * Marks the time that the page has been wound back to. An element of its own over the plot, so that winding draws no
 * curve anew.
 *
 * @param position reads signals; `null` for no mark
 */
function positionMark(position: () => number | null): uPlot.Plugin {
  const mark = document.createElement('div');
  mark.className = 'position-mark';
  let stop = () => {};
  const place = (plot: uPlot) => {
    const time = position();
    mark.hidden = time === null;
    if (time !== null) mark.style.transform = `translateX(${Math.round(plot.valToPos(time, 'x')) - 1}px)`;
  };
  return {
    hooks: {
      init(plot) {
        plot.over.append(mark);
      },
      ready(plot) {
        stop = effect(() => place(plot));
      },
      draw: place,
      destroy: () => stop(),
    },
  };
}

/** Draws a plot again when the ends of its time axis change. @param range reads signals */
function rangeOf(range: () => [number, number]): uPlot.Plugin {
  let stop = () => {};
  return {
    hooks: {
      ready(plot) {
        let isFirst = true;
        stop = effect(() => {
          range();
          if (!isFirst) plot.setData(plot.data);
          isFirst = false;
        });
      },
      destroy: () => stop(),
    },
  };
}
