import type { Frame } from '../state/frame.ts';
import type { SeriesSpec } from './chart-spec.ts';

/** One drawn curve. Layers are drawn from the outermost inward, each filled down to zero. */
export interface Trace {
  readonly series: SeriesSpec;
  readonly at: (frame: Frame) => number | null;
}

/** The curves that draw `series`, in drawing order: layers first, then what lies above them. */
export function tracesOf(series: readonly SeriesSpec[], signed: boolean): Trace[] {
  const layers = series.filter(({ draw }) => draw === 'layer');
  const others = series.filter(({ draw }) => draw !== 'layer');
  const stacked = layers.map((_, i) => i).reverse();
  return [
    ...stacked.map((i) => layerTrace(layers, i, 1)),
    ...(signed ? stacked.map((i) => layerTrace(layers, i, -1)) : []),
    ...others.map((one) => ({ series: one, at: (frame: Frame) => one.value(frame) ?? null })),
  ];
}

/** The sum of the layers up to `top`, of those on one side of zero. */
function layerTrace(layers: readonly SeriesSpec[], top: number, side: 1 | -1): Trace {
  const under = layers.slice(0, top + 1);
  return {
    series: layers[top],
    at(frame) {
      if (layers[top].value(frame) == null) return null;
      let sum = 0;
      for (const layer of under) sum += Math.max(0, side * (layer.value(frame) ?? 0));
      return side * sum;
    },
  };
}

/** Columns for the plotting library that grow with the episode. */
export interface Columns {
  /** The x column (seconds of simulated time, or windows) and one column a trace. */
  readonly data: [x: number[], ...traces: (number | null)[][]];
  /** Takes in the frames not seen yet. */
  extend(frames: readonly Frame[]): void;
}

export function createColumns(traces: readonly Pick<Trace, 'at'>[]): Columns {
  const x: number[] = [];
  const values = traces.map((): (number | null)[] => []);
  return {
    data: [x, ...values],
    extend(frames) {
      for (let i = x.length; i < frames.length; i++) {
        const frame = frames[i];
        x.push(timeOf(frame));
        traces.forEach((trace, k) => {
          values[k].push(trace.at(frame));
        });
      }
    },
  };
}

/** The end of the frame's window: seconds of simulated time, or windows where the server names no window length. */
export function timeOf(frame: Frame): number {
  return frame.index * (frame.telemetry.windowSeconds ?? 1);
}
