import { effect } from '@preact/signals';
import type uPlot from 'uplot';
import type { Limit } from './chart-spec.ts';
import { palette } from './palette.ts';

/** Draws each limit as a dashed line with its name, and tints what lies beyond, deeper with each. */
export function limitLines(limits: () => readonly Limit[], textSize: number): uPlot.Plugin {
  return {
    hooks: {
      drawAxes(plot) {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.globalAlpha = 0.05;
        ctx.fillStyle = palette.peek().limit;
        for (const { value } of limits()) {
          const y = plot.valToPos(value, 'left', true);
          ctx.fillRect(bbox.left, bbox.top, bbox.width, Math.max(0, y - bbox.top));
        }
        ctx.restore();
      },
      draw(plot) {
        const { ctx, bbox } = plot;
        const ratio = devicePixelRatio;
        const colors = palette.peek();
        ctx.save();
        ctx.lineWidth = 1.25 * ratio;
        ctx.font = `500 ${(textSize - 1) * ratio}px Inter, system-ui, sans-serif`;
        ctx.textAlign = 'right';
        ctx.textBaseline = 'bottom';
        for (const { label, value } of limits()) {
          const y = Math.round(plot.valToPos(value, 'left', true));
          if (y < bbox.top) continue;
          ctx.strokeStyle = colors.limit;
          ctx.setLineDash([4 * ratio, 3 * ratio]);
          ctx.beginPath();
          ctx.moveTo(bbox.left, y);
          ctx.lineTo(bbox.left + bbox.width, y);
          ctx.stroke();
          ctx.setLineDash([]);
          ctx.lineJoin = 'round';
          ctx.lineWidth = 3 * ratio;
          ctx.strokeStyle = colors.surface;
          ctx.strokeText(label, bbox.left + bbox.width - 4 * ratio, y - 2 * ratio);
          ctx.lineWidth = 1.25 * ratio;
          ctx.fillStyle = colors.limit;
          ctx.fillText(label, bbox.left + bbox.width - 4 * ratio, y - 2 * ratio);
        }
        ctx.restore();
      },
    },
  };
}

/**
 * Marks the time that the page has been wound back to. An element of its own over the plot, so that winding draws no
 * curve anew.
 *
 * @param position reads signals; `null` for no mark
 */
export function positionMark(position: () => number | null): uPlot.Plugin {
  const mark = document.createElement('div');
  mark.className = 'position-mark';
  let stop = () => {};
  const place = (plot: uPlot) => {
    const time = position();
    mark.hidden = time === null;
    if (time !== null) mark.style.transform = `translateX(${Math.round(plot.valToPos(time, 'x')) - 1}px)`;
  };
  return {
    hooks: {
      init(plot) {
        plot.over.append(mark);
      },
      ready(plot) {
        stop = effect(() => place(plot));
      },
      draw: place,
      destroy: () => stop(),
    },
  };
}

/** Draws a plot again when the ends of its time axis change. @param range reads signals */
export function rangeOf(range: () => [number, number]): uPlot.Plugin {
  let stop = () => {};
  return {
    hooks: {
      ready(plot) {
        let isFirst = true;
        stop = effect(() => {
          range();
          if (!isFirst) plot.setData(plot.data);
          isFirst = false;
        });
      },
      destroy: () => stop(),
    },
  };
}
