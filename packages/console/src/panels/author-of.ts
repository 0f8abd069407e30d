import { driverName } from '../components/run-name.ts';
import type { ConsoleState } from '../state/console-state.ts';
import type { Run } from '../state/run.ts';

/** Longest author of an episode file, characters. */
const LONGEST_AUTHOR = 200;

/** Names of all who have played a run, in the order of their first windows. */
export function authorOf(state: ConsoleState, run: Run): string {
  const drivers = new Set(run.frames.value.flatMap(({ driver }) => driver ?? []));
  return [...drivers]
    .map((driver) => driverName(state, run, driver))
    .join(', ')
    .slice(0, LONGEST_AUTHOR);
}
