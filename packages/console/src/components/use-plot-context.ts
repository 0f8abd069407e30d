import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { PlotContext } from '../charts/plot-options.ts';
import { useConsole } from './console-context.ts';
import { clock, count } from './format.ts';
import { remSize } from './use-canvas.ts';

/** Time axis, text size and pointed window, shared by the plots of this page. */
export function usePlotContext(): PlotContext {
  const state = useConsole();
  const textSize = useSignal(smallTextSize());
  useEffect(() => {
    const measure = () => {
      textSize.value = smallTextSize();
    };
    addEventListener('resize', measure);
    return () => removeEventListener('resize', measure);
  }, [textSize]);
  const size = textSize.value;
  return useMemo<PlotContext>(
    () => ({
      textSize: size,
      range() {
        const [from, to] = state.zoomed.value ?? [0, state.charted.peek()];
        const windowSeconds = state.latest.peek()?.telemetry.windowSeconds ?? 1;
        return [from * windowSeconds, to * windowSeconds];
      },
      onZoom(from, to) {
        const windowSeconds = state.latest.peek()?.telemetry.windowSeconds ?? 1;
        const [first, last] = [Math.max(0, Math.floor(from / windowSeconds)), Math.ceil(to / windowSeconds)];
        if (last > first) state.zoomed.value = [first, last];
      },
      timeText: (value) =>
        state.latest.peek()?.telemetry.windowSeconds === undefined ? count(value) : clock(value),
      onPoint(index) {
        state.pointedAt.value = index;
      },
      onPick: state.seek,
      position() {
        const at = state.position.value;
        return at === null ? null : at * (state.latest.peek()?.telemetry.windowSeconds ?? 1);
      },
    }),
    [size, state],
  );
}

function smallTextSize(): number {
  return Math.round(remSize() * 0.74);
}
