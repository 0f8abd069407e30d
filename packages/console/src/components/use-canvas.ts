import { effect } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

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
