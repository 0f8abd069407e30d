import type { ConsoleState } from './console-state.ts';

/** How many windows the episode has, where the task says so. */
export function episodeWindows(state: ConsoleState): number | undefined {
  const task = state.tasks.value.find(({ id }) => String(id) === state.task.value);
  const windows = task?.windows;
  return typeof windows === 'number' && windows > 0 ? windows : undefined;
}
