import type { ConsoleState } from '../state/console-state.ts';
import { BY_HAND, type Run } from '../state/run.ts';

/** Who plays a run, as the page calls it. */
export function runName(state: ConsoleState, run: Run): string {
  const driver = run.driver.value;
  if (driver === BY_HAND) return state.opened.value ? 'Recorded' : 'By hand';
  return state.policies.value.find(({ name }) => name === driver)?.title ?? driver;
}
