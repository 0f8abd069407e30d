import type { ConsoleState } from '../state/console-state.ts';
import { BY_HAND, RECORDED, type Run } from '../state/run.ts';

/** Name of the player of a run. */
export function runName(state: ConsoleState, run: Run): string {
  return driverName(state, run, run.driver.value);
}

/** Name of a driver that has played windows of a run. */
export function driverName(state: ConsoleState, run: Run, driver: string): string {
  if (driver === BY_HAND) return 'By hand';
  if (driver === RECORDED) return run.author ?? 'Recorded';
  return state.policies.value.find(({ name }) => name === driver)?.title ?? driver;
}
