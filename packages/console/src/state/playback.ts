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
