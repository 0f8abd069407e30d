import type { ConsoleState } from './console-state.ts';
import { RUN_PLACES } from './run.ts';

/** Plays and winds by keys, unless the key means something to the focused control. */
export function listenToKeys(state: ConsoleState, showHelp: () => void): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isOn = (controls: string) =>
      event.target instanceof Element && event.target.closest(controls) !== null;
    if (isOn('dialog') || isOn('input:not([type=range]), select, textarea')) return;
    if (event.key === ' ') {
      if (event.repeat || isOn('button, summary, a')) return;
      state.togglePlay();
    } else if (isOn('input')) return;
    else if (event.key === 'ArrowRight') void state.step();
    else if (event.key === 'ArrowLeft') state.seek((state.position.value ?? state.newest.value) - 1);
    else if (event.key === 'Home') state.seek(0);
    else if (event.key === 'End') state.seek(Infinity);
    else if (event.key === '+') state.zoom(1 / 2);
    else if (event.key === '-') state.zoom(2);
    else if (event.key === '?') showHelp();
    else if (Number(event.key) >= 1 && Number(event.key) <= RUN_PLACES) {
      const run = state.runs.value[Number(event.key) - 1];
      if (run) state.focus(run);
    } else return;
    event.preventDefault();
  });
}
