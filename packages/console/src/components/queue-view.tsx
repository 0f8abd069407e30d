import { useComputed, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { palette, toneOfClass } from '../charts/palette.ts';
import { observed } from '../state/observed.ts';
import { type CellGroup, gridFor, thingsPerCell } from './cell-grid.ts';
import { useConsole } from './console-context.ts';
import { count } from './format.ts';
import { useCanvas } from './use-canvas.ts';

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
    if (total.value === 0) return 'Nobody waits';
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
