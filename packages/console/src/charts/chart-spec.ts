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
