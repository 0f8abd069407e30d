import { effect } from '@preact/signals';
import type { ConsoleState } from './console-state.ts';

/** Drives the episode with the display's frames while it plays. */
export function playInFrames(state: ConsoleState): void {
  let frame: number | undefined;
  const next = (now: number) => {
    frame = requestAnimationFrame(next);
    state.tick(now);
  };
  effect(() => {
    if (state.playing.value) frame ??= requestAnimationFrame(next);
    else if (frame !== undefined) {
      cancelAnimationFrame(frame);
      frame = undefined;
    }
  });
}

/** Space plays and pauses, the right arrow plays one window; both only where the key means nothing to the focused control. */
export function playWithKeys(state: ConsoleState): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const isOn = (controls: string) =>
      event.target instanceof Element && event.target.closest(controls) !== null;
    if (event.key === ' ' && !isOn('input, select, button, summary, a')) state.togglePlay();
    else if (event.key === 'ArrowRight' && !isOn('input, select')) void state.step();
    else return;
    event.preventDefault();
  });
}
