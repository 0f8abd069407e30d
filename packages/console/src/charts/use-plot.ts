import { effect, useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { remSize } from '../components/canvas.ts';
import { clock, count } from '../components/format.ts';
import { listen } from '../components/listen.ts';
import { useConsole } from '../state/console-state.ts';
import { palette } from './palette.ts';
import type { PlotContext } from './plot-options.ts';

/** Drawing all plots in one displayed frame would use it up; nobody sees that some follow a frame later. */
const DRAWINGS_PER_FRAME = 4;

/** Drawings that wait for a displayed frame. One that is asked for again keeps its place. */
export function createDrawQueue(requestFrame: (callback: () => void) => void) {
  const waiting = new Set<() => void>();
  let isRequested = false;
  const request = () => {
    if (isRequested || waiting.size === 0) return;
    isRequested = true;
    requestFrame(() => {
      isRequested = false;
      for (const draw of [...waiting].slice(0, DRAWINGS_PER_FRAME)) {
        waiting.delete(draw);
        draw();
      }
      request();
    });
  };
  return {
    add(draw: () => void): void {
      waiting.add(draw);
      request();
    },
    remove(draw: () => void): void {
      waiting.delete(draw);
    },
  };
}

const drawings = createDrawQueue((callback) => requestAnimationFrame(callback));

/** A plot to keep on the page, and how to feed it. */
export interface PlotSource {
  readonly options: Omit<uPlot.Options, 'width' | 'height'>;
  /** Called before each drawing; signals read here cause the next one. */
  readonly data: () => uPlot.AlignedData;
}

/**
 * Keeps a plot in the returned element: as large as it, and drawn only while it is on the screen. A new `source` makes a new plot.
 */
export function usePlot(source: PlotSource | undefined): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element || !source) return;
    const plot = new uPlot({ ...source.options, ...sizeOf(element) }, undefined, element);
    let data: uPlot.AlignedData | undefined;
    let onScreen = true;
    const draw = () => {
      if (data && onScreen) plot.setData(data);
    };
    const stopFeeding = effect(() => {
      void palette.value;
      data = source.data();
      drawings.add(draw);
    });
    const sizes = new ResizeObserver(() => plot.setSize(sizeOf(element)));
    sizes.observe(element);
    const visibility = new IntersectionObserver((entries) => {
      onScreen = entries[entries.length - 1].isIntersecting;
      drawings.add(draw);
    });
    visibility.observe(element);
    return () => {
      stopFeeding();
      sizes.disconnect();
      visibility.disconnect();
      drawings.remove(draw);
      plot.destroy();
    };
  }, [source]);
  return box;
}

function sizeOf(element: HTMLElement): { width: number; height: number } {
  return { width: Math.max(1, element.clientWidth), height: Math.max(1, element.clientHeight) };
}

/** Time axis, text size and pointed window, shared by the plots of this page. */
export function usePlotContext(): PlotContext {
  const state = useConsole();
  const textSize = useSignal(smallTextSize());
  useEffect(() => {
    const resize = () => {
      textSize.value = smallTextSize();
    };
    return listen({ resize });
  }, [textSize]);
  const size = textSize.value;
  return useMemo<PlotContext>(() => {
    const told = () => state.latest.peek()?.telemetry.windowSeconds;
    const windowSeconds = () => told() ?? 1;
    return {
      textSize: size,
      range() {
        const [from, to] = state.zoomed.value ?? [0, state.charted.peek()];
        return [from * windowSeconds(), to * windowSeconds()];
      },
      onZoom(from, to) {
        const first = Math.max(0, Math.floor(from / windowSeconds()));
        const last = Math.ceil(to / windowSeconds());
        if (last > first) state.zoomed.value = [first, last];
      },
      timeText: (value) => (told() === undefined ? count(value) : clock(value)),
      onPoint(index) {
        state.pointedAt.value = index;
      },
      onPick: state.seek,
      position() {
        const at = state.position.value;
        return at === null ? null : at * windowSeconds();
      },
    };
  }, [size, state]);
}

function smallTextSize(): number {
  return Math.round(remSize() * 0.74);
}
