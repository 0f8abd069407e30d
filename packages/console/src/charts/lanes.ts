import uPlot from 'uplot';
import type { Knob } from '../api/action-schema.ts';
import { type Frame, observed, type ServerEvent } from '../state/frame.ts';
import { timeOf } from './chart-spec.ts';
import { palette, type Tone } from './palette.ts';
import { axisLook, baseOptions, type PlotContext, timeAxis, tone } from './plot-options.ts';

/** A knob whose values can be drawn as heights. */
type LaneKnob = Extract<Knob, { kind: 'switch' | 'choice' | 'range' }>;

/** A knob's strip of the timeline. */
interface Lane {
  readonly knob: LaneKnob;
  /** Drawn by doubling instead of evenly. */
  readonly doubling: boolean;
}

/** Share of a lane's height that stays free above and below the curve. */
const LANE_MARGIN = 0.2;

/** A knob's value as a height; `null` where nothing was decided. */
export function laneValue({ knob, doubling }: Lane, value: unknown): number | null {
  switch (knob.kind) {
    case 'switch':
      return typeof value === 'boolean' ? Number(value) : null;
    case 'choice': {
      const index = knob.values.indexOf(value);
      return index < 0 ? null : index;
    }
    case 'range':
      if (typeof value !== 'number') return null;
      return doubling ? Math.log2(value) : value;
  }
}

export function hasLane(knob: Knob): knob is LaneKnob {
  return ['switch', 'choice', 'range'].includes(knob.kind);
}

function laneBounds(lane: Lane): [low: number, high: number] {
  const { knob } = lane;
  if (knob.kind === 'range') return [laneValue(lane, knob.minimum)!, laneValue(lane, knob.maximum)!];
  return [0, knob.kind === 'switch' ? 1 : Math.max(1, knob.values.length - 1)];
}

/** The scale that places the values of lane `index` inside its strip of a plot with `count` strips, the first on top. */
export function laneScale(lane: Lane, index: number, count: number): [minimum: number, maximum: number] {
  const [low, high] = laneBounds(lane);
  const from = (count - 1 - index + LANE_MARGIN) / count;
  const to = (count - index - LANE_MARGIN) / count;
  const height = (high - low) / (to - from);
  const minimum = low - from * height;
  return [minimum, minimum + height];
}

/** Options of the timeline: a strip for the events, then one a lane. */
export function laneOptions(
  lanes: readonly Lane[],
  frames: () => readonly Frame[],
  context: PlotContext,
): Omit<uPlot.Options, 'width' | 'height'> {
  const base = baseOptions(context);
  const strips = lanes.length + 1;
  const scales = Object.fromEntries(
    lanes.map((lane, i) => [
      lane.knob.name,
      { range: (): uPlot.Range.MinMax => laneScale(lane, i + 1, strips) },
    ]),
  );
  const stepped = uPlot.paths.stepped!({ align: -1 });
  return {
    ...base,
    padding: [0, context.textSize * 2.1, 0, context.textSize * 1.5],
    cursor: { ...base.cursor, points: { show: false } },
    scales: { ...base.scales, ...scales },
    axes: [timeAxis(context), { ...axisLook(context), show: false, scale: lanes[0].knob.name }],
    series: [
      {},
      ...lanes.map(
        (lane): uPlot.Series => ({
          scale: lane.knob.name,
          stroke: tone('median'),
          fill: () => `color-mix(in srgb, ${palette.peek().median} 16%, transparent)`,
          fillTo: laneBounds(lane)[0],
          width: context.textSize * 0.15,
          paths: stepped,
          points: { show: false },
        }),
      ),
    ],
    plugins: [stripLines(strips), eventMarks(frames, strips), ...base.plugins!],
  };
}

function stripLines(strips: number): uPlot.Plugin {
  return {
    hooks: {
      drawAxes({ ctx, bbox }) {
        ctx.save();
        ctx.strokeStyle = palette.peek().line;
        ctx.lineWidth = devicePixelRatio;
        for (let i = 0; i <= strips; i++) {
          const y = Math.round(bbox.top + (bbox.height * i) / strips) + 0.5;
          ctx.beginPath();
          ctx.moveTo(bbox.left, y);
          ctx.lineTo(bbox.left + bbox.width, y);
          ctx.stroke();
        }
        ctx.restore();
      },
    },
  };
}

/** Events that are marked, by their kind. */
export const EVENTS: Readonly<Record<string, { text: string; mark: string; tone: Tone }>> = {
  oom: { text: 'out of memory', mark: '✕', tone: 'limit' },
  reload: { text: 'reload', mark: '○', tone: 'batch' },
  drain_started: { text: 'drain', mark: '▼', tone: 'arrivals' },
  preemption: { text: 'preempted', mark: '❙', tone: 'waiting' },
};

/** Preemptions are counted by the window, not logged one by one: one mark stands for those of a window. */
function eventsOf(frame: Frame): readonly ServerEvent[] {
  const { events } = frame.telemetry;
  return observed(frame, 'eviction_events') ? [{ kind: 'preemption' }, ...events] : events;
}

/** A mark in the top strip for each event; the height tells the kinds apart without colour. */
function eventMarks(frames: () => readonly Frame[], strips: number): uPlot.Plugin {
  const marks: { kind: string; time: number }[] = [];
  let seen = 0;
  const takeIn = () => {
    const all = frames();
    for (; seen < all.length; seen++) {
      for (const { kind, atSeconds } of eventsOf(all[seen])) {
        if (EVENTS[kind]) marks.push({ kind, time: atSeconds ?? timeOf(all[seen]) });
      }
    }
  };
  return {
    hooks: {
      draw(plot) {
        takeIn();
        const { ctx, bbox } = plot;
        const height = bbox.height / strips;
        const colors = palette.peek();
        ctx.save();
        for (const { kind, time } of marks) {
          const x = Math.round(plot.valToPos(time, 'x', true));
          drawMark(ctx, kind, colors[EVENTS[kind].tone], x, bbox.top + height / 2, height * 0.28);
        }
        ctx.restore();
      },
    },
  };
}

function drawMark(
  ctx: CanvasRenderingContext2D,
  kind: string,
  color: string,
  x: number,
  y: number,
  r: number,
): void {
  ctx.fillStyle = color;
  ctx.strokeStyle = color;
  ctx.lineWidth = Math.max(1.5, r / 3);
  ctx.beginPath();
  switch (kind) {
    case 'oom':
      ctx.moveTo(x - r, y - r);
      ctx.lineTo(x + r, y + r);
      ctx.moveTo(x + r, y - r);
      ctx.lineTo(x - r, y + r);
      ctx.stroke();
      return;
    case 'reload':
      ctx.arc(x, y, r * 0.8, 0, Math.PI * 2);
      ctx.stroke();
      return;
    case 'drain_started':
      ctx.moveTo(x - r, y - r * 0.8);
      ctx.lineTo(x + r, y - r * 0.8);
      ctx.lineTo(x, y + r);
      ctx.fill();
      return;
    default:
      ctx.fillRect(x - r / 4, y - r, r / 2, r * 2);
  }
}
