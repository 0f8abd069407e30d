import { useComputed, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { palette, toneOfClass } from '../charts/palette.ts';
import { observed } from '../state/observed.ts';
import { type CellGroup, gridFor, thingsPerCell } from './cell-grid.ts';
import { useConsole } from './console-context.ts';
import { count } from './format.ts';
import { tip } from './tooltip.tsx';
import { useCanvas } from './use-canvas.ts';

/** Width of a window's bar and the space beside it, rem. */
const BAR_REM = 0.3;
const GAP_REM = 0.1;

/** The requests of the latest windows as they arrived, a bar a window, stacked by class; the newest at the right. */
export function ArrivalsView(): JSX.Element {
  const state = useConsole();
  const scene = useComputed(() => {
    const frame = state.shown.value;
    return { frames: state.frames.value, last: frame?.index ?? 0 };
  });
  const canvas = useCanvas(
    () => ({ ...scene.value, colors: palette.value }),
    (context, { width, height, rem }, { frames, last, colors }) => {
      const bar = Math.round(BAR_REM * rem);
      const stride = bar + Math.max(1, Math.round(GAP_REM * rem));
      const bars = Math.floor((width + stride - bar) / stride);
      const first = Math.max(1, last - bars + 1);
      const windows = frames.slice(first, last + 1);
      const most = Math.max(1, ...windows.map((frame) => arrivals(frame.telemetry.classes) ?? rate(frame)));
      windows.forEach((frame, i) => {
        const x = width - (windows.length - i) * stride + (stride - bar);
        let y = height;
        const classes = frame.telemetry.classes;
        const parts =
          arrivals(classes) === undefined
            ? [{ tone: 'arrivals' as const, size: rate(frame) }]
            : classes.map(({ name, arrived = 0 }, k) => ({ tone: toneOfClass(name, k), size: arrived }));
        for (const { tone, size } of parts) {
          const tall = (size / most) * height;
          context.fillStyle = colors[tone];
          context.fillRect(x, y - tall, bar, tall);
          y -= tall;
        }
      });
    },
  );
  return (
    <div class="arrivals" {...tip('Requests that arrived in each of the latest windows, by class')}>
      <canvas ref={canvas} role="img" aria-label="Requests that arrived in the latest windows" />
    </div>
  );
}

function arrivals(classes: readonly { readonly arrived?: number }[]): number | undefined {
  if (classes.length === 0 || classes[0].arrived === undefined) return undefined;
  return classes.reduce((sum, { arrived = 0 }) => sum + arrived, 0);
}

function rate(frame: Parameters<typeof observed>[0]): number {
  return observed(frame, 'request_arrival_rate') ?? 0;
}

/** The waiting requests as squares, the head of the queue at the right. */
export function QueueView(): JSX.Element {
  const state = useConsole();
  const perCell = useSignal(1);
  const groups = useComputed<CellGroup[]>(() => {
    const frame = state.shown.value;
    if (!frame) return [];
    const { classes } = frame.telemetry;
    if (classes.length === 0) return [{ tone: 'waiting', amount: observed(frame, 'queue_depth') ?? 0 }];
    return classes.map(({ name, waiting }, i) => ({ tone: toneOfClass(name, i), amount: waiting }));
  });
  const total = useComputed(() => groups.value.reduce((sum, { amount }) => sum + amount, 0));
  const legend = useComputed(() => {
    if (total.value === 0) return 'No request waits';
    return perCell.value > 1 ? `1 square = ${count(perCell.value)} requests` : '1 square = 1 request';
  });
  const canvas = useCanvas(
    () => ({ groups: groups.value, total: total.value, colors: palette.value }),
    (context, size, scene) => {
      const grid = gridFor(size);
      const unit = thingsPerCell(scene.total, grid.columns * grid.rows - scene.groups.length);
      perCell.value = unit;
      let index = 0;
      for (const { tone, amount } of scene.groups) {
        context.beginPath();
        for (let k = Math.ceil(amount / unit); k > 0; k--, index++) {
          const column = Math.floor(index / grid.rows);
          const x = size.width - (column + 1) * (grid.side + grid.gap) + grid.gap;
          const y = (index % grid.rows) * (grid.side + grid.gap);
          context.roundRect(x, y, grid.side, grid.side, grid.side / 4);
        }
        context.fillStyle = scene.colors[tone];
        context.fill();
      }
    },
  );
  return (
    <div class="queue-view">
      <canvas ref={canvas} role="img" aria-label="The waiting requests as squares" />
      <p class="fine">{legend}</p>
    </div>
  );
}
