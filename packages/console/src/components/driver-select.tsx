import type { JSX } from 'preact';
import { BY_HAND, RECORDED, type Run } from '../state/run.ts';
import { useConsole } from './console-context.ts';
import { runName } from './run-name.ts';

/** Chooses who plays a run. */
export function DriverSelect({ run, label }: { run: Run; label: string }): JSX.Element {
  const state = useConsole();
  return (
    <select
      aria-label={label}
      value={run.driver.value}
      onChange={(event) => state.chooseDriver(event.currentTarget.value, run)}
    >
      {run.driver.value === RECORDED && <option value={RECORDED}>{runName(state, run)}, recorded</option>}
      {state.policies.value.map(({ name, title, description }) => (
        <option key={name} value={name} title={description}>
          {title}
        </option>
      ))}
      <option value={BY_HAND}>By hand</option>
    </select>
  );
}
