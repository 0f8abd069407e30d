import type { ConsoleState } from './console-state.ts';
import { observed } from './observed.ts';

/** Whether the environment is an LLM server, by what it observes. */
export function isServer(state: ConsoleState): boolean {
  const [frame] = state.frames.value;
  return frame !== undefined && observed(frame, 'queue_depth') !== undefined;
}
