import type { JSX } from 'preact';
import { useConsole } from './console-context.ts';
import { DriverSelect } from './driver-select.tsx';
import { PlusIcon } from './icons.tsx';
import { LaterRunCards } from './later.ts';
import { NarrationLine } from './narration-line.tsx';

/** Who plays, and how it goes: one run as a line, several as cards side by side. */
export function RunStrip(): JSX.Element {
  const state = useConsole();
  const runs = state.runs.value;
  if (runs.length === 1) {
    return (
      <section class="run-line" aria-label="Run" aria-busy={runs[0].isBusy}>
        <div class="field">
          <span class="label">Played by</span>
          <DriverSelect run={runs[0]} label="Played by" />
        </div>
        <AddRun />
        <NarrationLine key={runs[0].id} run={runs[0]} />
        <BusyBar />
      </section>
    );
  }
  return <LaterRunCards />;
}

/** Chooses a policy to put beside the runs, where the same seed gives the same episode. */
export function AddRun(): JSX.Element | null {
  const state = useConsole();
  const isOffered = state.policies.value.length > 0 && state.abilities.value.episodes;
  if (!isOffered || state.latest.value === undefined) return null;
  const isJoining = state.joining.value !== undefined;
  return (
    <label class={isJoining ? 'add-run joining' : 'add-run'}>
      <PlusIcon />
      <span>{isJoining ? 'Joining …' : 'Compare'}</span>
      <select
        aria-label="Compare with"
        value=""
        disabled={isJoining}
        onChange={(event) => {
          const policy = event.currentTarget.value;
          event.currentTarget.value = '';
          if (policy) void state.addRun(policy);
        }}
      >
        <option value="">Compare with …</option>
        {state.policies.value.map(({ name, title, description }) => (
          <option key={name} value={name} title={description}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Moves while the section around it has been busy for longer than a moment. */
export function BusyBar(): JSX.Element {
  return <span class="busy-bar" aria-hidden="true" />;
}
