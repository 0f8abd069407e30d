import { effect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { palette } from './palette.ts';

/** A plot to keep on the page, and how to feed it. */
export interface PlotSource {
  readonly options: Omit<uPlot.Options, 'width' | 'height'>;
  /** Called before each drawing; signals read here cause the next one. */
  readonly data: () => uPlot.AlignedData;
}

/** Keeps a plot in the returned element: as large as it, drawn at most once a displayed frame. A new `source` makes a new plot. */
export function usePlot(source: PlotSource | undefined): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element || !source) return;
    const plot = new uPlot({ ...source.options, ...sizeOf(element) }, undefined, element);
    let due: number | undefined;
    let data: uPlot.AlignedData | undefined;
    const draw = () => {
      due ??= requestAnimationFrame(() => {
        due = undefined;
        if (data) plot.setData(data);
      });
    };
    const stopFeeding = effect(() => {
      void palette.value;
      data = source.data();
      draw();
    });
    const sizes = new ResizeObserver(() => plot.setSize(sizeOf(element)));
    sizes.observe(element);
    return () => {
      stopFeeding();
      sizes.disconnect();
      if (due !== undefined) cancelAnimationFrame(due);
      plot.destroy();
    };
  }, [source]);
  return box;
}

function sizeOf(element: HTMLElement): { width: number; height: number } {
  return { width: Math.max(1, element.clientWidth), height: Math.max(1, element.clientHeight) };
}
