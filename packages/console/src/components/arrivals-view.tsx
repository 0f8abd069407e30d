import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { palette, toneOfClass } from '../charts/palette.ts';
import { observed } from '../state/observed.ts';
import { useConsole } from './console-context.ts';
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
