import { effect } from '@preact/signals';
import type uPlot from 'uplot';

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
