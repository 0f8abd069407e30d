import { effect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Tone } from '../charts/palette.ts';

export interface CanvasSize {
  /** CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** The page's text size, CSS pixels. */
  readonly rem: number;
}

/**
 * Keeps a canvas painted: `read` collects what to paint and is run again when a signal in it changes; `paint` draws
 * it, at most once a displayed frame, on a clean canvas in CSS pixels.
 */
export function useCanvas<Scene>(
  read: () => Scene,
  paint: (context: CanvasRenderingContext2D, size: CanvasSize, scene: Scene) => void,
): RefObject<HTMLCanvasElement | null> {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context) return;
    let scene: Scene | undefined;
    let size: CanvasSize | undefined;
    let due: number | undefined;
    const draw = () => {
      due ??= requestAnimationFrame(() => {
        due = undefined;
        if (!size || scene === undefined) return;
        context.clearRect(0, 0, size.width, size.height);
        paint(context, size, scene);
      });
    };
    const stopReading = effect(() => {
      scene = read();
      draw();
    });
    // Asking the element for its size at each drawing would make the browser lay the page out each time.
    const sizes = new ResizeObserver(([{ contentRect }]) => {
      const ratio = devicePixelRatio;
      size = { width: contentRect.width, height: contentRect.height, rem: remSize() };
      element.width = Math.round(size.width * ratio);
      element.height = Math.round(size.height * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      draw();
    });
    sizes.observe(element);
    return () => {
      stopReading();
      sizes.disconnect();
      if (due !== undefined) cancelAnimationFrame(due);
    };
  }, []);
  return canvas;
}

/** The page's text size, CSS pixels. */
export function remSize(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}

/** A number of equal things, drawn as cells of one colour. */
export interface CellGroup {
  readonly tone: Tone;
  readonly amount: number;
  /** Draws outlines only. */
  readonly hollow?: boolean;
}

const SIDE_REM = 0.57;
const GAP_REM = 0.14;

/** The grid of square cells that fills `size`. */
export function gridFor({ width, height, rem }: CanvasSize) {
  const side = Math.round(SIDE_REM * rem);
  const gap = Math.round(GAP_REM * rem);
  return {
    columns: Math.max(1, Math.floor((width + gap) / (side + gap))),
    rows: Math.max(1, Math.floor((height + gap) / (side + gap))),
    /** Side of a cell and space between cells, CSS pixels. */
    side,
    gap,
  };
}

/** Least number of things a cell, so that `total` of them fit into `cells`: 1, 2, 5, 10, 20, 50 ... */
export function thingsPerCell(total: number, cells: number): number {
  for (let decade = 1; ; decade *= 10) {
    for (const step of [1, 2, 5]) if (Math.ceil(total / (decade * step)) <= cells) return decade * step;
  }
}

/**
 * Shares `cells` among the groups by their amounts, where the whole grid stands for `capacity`. Rounds the running
 * sum, so that the cells never exceed the grid while the amounts do not exceed the capacity.
 */
export function shareCells(groups: readonly CellGroup[], capacity: number, cells: number): number[] {
  let sum = 0;
  let given = 0;
  return groups.map(({ amount }) => {
    sum += amount;
    const upTo = Math.min(cells, Math.round((sum / capacity) * cells));
    const share = Math.max(0, upTo - given);
    given += share;
    return share;
  });
}
