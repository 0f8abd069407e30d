import type { Task } from '../api/wire.ts';
import type { Frame } from '../state/frame.ts';
import type { Tone } from './palette.ts';

/** One quantity of a chart. */
export interface SeriesSpec {
  readonly label: string;
  readonly tone: Tone;
  /** `null`: nothing to draw in this window. `undefined`: the server does not tell, and the series is left out. */
  readonly value: (frame: Frame) => number | null | undefined;
  readonly format: (value: number) => string;
  /** `layer` stacks on the layers before it; `step` keeps a value through its window. Default `line`. */
  readonly draw?: 'line' | 'area' | 'dashed' | 'layer' | 'step';
  /** Vertical axis. Default `left`. */
  readonly axis?: 'left' | 'right';
  /** The observation field whose definition explains it. */
  readonly field?: string;
  readonly definition?: string;
  /** Dash pattern in CSS pixels, for runs side by side. */
  readonly dash?: readonly number[];
}

/** A line that the quantities should not cross. */
export interface Limit {
  readonly label: string;
  readonly value: number;
}

/** A chart of an episode over simulated time. */
export interface ChartSpec {
  readonly id: string;
  readonly title: string;
  /** Unit of the left axis, by the latest frame. */
  readonly unit: (latest: Frame) => string;
  /** The question that the chart answers, shown where it fits; it may be empty. */
  readonly question: string;
  /** Definition of the quantity, where the chart has no question. */
  readonly definition?: string;
  /** Series as the given frame, the latest, suggests them. */
  readonly series: (frame: Frame, task: Task | undefined) => readonly SeriesSpec[];
  /** The one quantity by which runs are compared side by side. */
  readonly compared: Pick<SeriesSpec, 'label' | 'value' | 'format' | 'field' | 'definition' | 'draw'>;
  /** Unit of the left axis then. Default `unit`. */
  readonly comparedUnit?: string;
  readonly limits?: (frame: Frame, task: Task | undefined) => readonly Limit[];
  readonly tick: (value: number) => string;
  readonly rightTick?: (value: number) => string;
  readonly logarithmic?: boolean;
  /** Layers may be negative and then stack downward. */
  readonly signed?: boolean;
  /** Names the values of a quantity that has few: 0 is the first. */
  readonly levels?: readonly string[];
}

/** The series that the server gives values for. */
export function presentSeries(spec: ChartSpec, frame: Frame, task: Task | undefined): readonly SeriesSpec[] {
  return spec.series(frame, task).filter((series) => series.value(frame) !== undefined);
}

/** One drawn curve. Layers are drawn from the outermost inward, each filled down to zero. */
export interface Trace {
  readonly series: SeriesSpec;
  readonly at: (frame: Frame) => number | null;
  /** The windows that it is drawn from. */
  readonly frames: () => readonly Frame[];
}

/** The curves that draw `series`, in drawing order: layers first, then what lies above them. */
export function tracesOf(
  series: readonly SeriesSpec[],
  signed: boolean,
  frames: () => readonly Frame[],
): Trace[] {
  const layers = series.filter(({ draw }) => draw === 'layer');
  const others = series.filter(({ draw }) => draw !== 'layer');
  const stacked = layers.map((_, i) => i).reverse();
  return [
    ...stacked.map((i) => layerTrace(layers, i, 1, frames)),
    ...(signed ? stacked.map((i) => layerTrace(layers, i, -1, frames)) : []),
    ...others.map((one) => ({ series: one, at: (frame: Frame) => one.value(frame) ?? null, frames })),
  ];
}

/** The sum of the layers up to `top`, of those on one side of zero. */
function layerTrace(
  layers: readonly SeriesSpec[],
  top: number,
  side: 1 | -1,
  frames: () => readonly Frame[],
): Trace {
  const under = layers.slice(0, top + 1);
  return {
    series: layers[top],
    frames,
    at(frame) {
      if (layers[top].value(frame) == null) return null;
      let sum = 0;
      for (const layer of under) sum += Math.max(0, side * (layer.value(frame) ?? 0));
      return side * sum;
    },
  };
}

/** Columns for the plotting library that grow with the episode. */
export function createColumns(traces: readonly Pick<Trace, 'at' | 'frames'>[]) {
  const x: number[] = [];
  const values = traces.map((): (number | null)[] => []);
  const taken = traces.map(() => 0);
  return {
    /** The x column (seconds of simulated time, or windows) and one column a trace. */
    data: [x, ...values] as [x: number[], ...traces: (number | null)[][]],
    /** Takes in the frames not seen yet. */
    extend() {
      for (const { frames } of traces) {
        const all = frames();
        for (let i = x.length; i < all.length; i++) x.push(timeOf(all[i]));
      }
      traces.forEach(({ at, frames }, k) => {
        const all = frames();
        for (let i = taken[k]; i < all.length; i++) values[k][i] = at(all[i]);
        taken[k] = all.length;
        // A run that is behind the others has nothing to draw yet.
        for (let i = taken[k]; i < x.length; i++) values[k][i] = null;
      });
    },
  };
}

/** The end of the frame's window: seconds of simulated time, or windows where the server names no window length. */
export function timeOf(frame: Frame): number {
  return frame.index * (frame.telemetry.windowSeconds ?? 1);
}
