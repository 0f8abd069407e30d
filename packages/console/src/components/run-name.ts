import type { ConsoleState } from '../state/console-state.ts';
import { BY_HAND, RECORDED, type Run } from '../state/run.ts';

/** Longest author of an episode file, characters. */
const LONGEST_AUTHOR = 200;

/** Name of the player of a run. */
export function runName(state: ConsoleState, run: Run): string {
  return driverName(state, run, run.driver.value);
}

/** Names of all who have played a run, in the order of their first windows. */
export function authorOf(state: ConsoleState, run: Run): string {
  const drivers = new Set(run.frames.value.flatMap(({ driver }) => driver ?? []));
  return [...drivers]
    .map((driver) => driverName(state, run, driver))
    .join(', ')
    .slice(0, LONGEST_AUTHOR);
}

function driverName(state: ConsoleState, run: Run, driver: string): string {
  if (driver === BY_HAND) return 'By hand';
  if (driver === RECORDED) return run.author ?? 'Recorded';
  return state.policies.value.find(({ name }) => name === driver)?.title ?? driver;
}
