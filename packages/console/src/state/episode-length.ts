import type { ConsoleState } from './console-state.ts';

/** How many windows the episode has, where the task or the server says so. */
export function episodeWindows(state: ConsoleState): number | undefined {
  const task = state.chosenTask.value;
  for (const windows of [task?.windows, task?.episode_length])
    if (typeof windows === 'number' && windows > 0) return windows;
  return undefined;
}
