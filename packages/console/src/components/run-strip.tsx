import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { calm, type Narration, narrate } from '../llm-server/narration.ts';
import { type ConsoleState, useConsole } from '../state/console-state.ts';
import { BY_HAND, playerName, RECORDED, type Run } from '../state/run.ts';
import { Icon, Select } from './controls.tsx';
import { count } from './format.ts';
import { LazyRunCards, LazyRunSentence } from './lazy.tsx';

/** One run as a line, several as cards side by side. */
export function RunStrip(): JSX.Element {
  const state = useConsole();
  const runs = state.runs.value;
  const { value: isServer } = useComputed(() => state.latest.value === undefined || state.isServer.value);
  const RunSentence = isServer ? NarrationLine : LazyRunSentence;
  if (runs.length === 1) {
    return (
      <section class="run-line row wrap" aria-label="Run" aria-busy={runs[0].isBusy}>
        <div class="field row gap">
          <span class="label">Played by</span>
          <DriverSelect run={runs[0]} label="Played by" />
        </div>
        <AddRun />
        <RunSentence key={runs[0].id} run={runs[0]} />
        <BusyBar />
      </section>
    );
  }
  return <LazyRunCards />;
}

/** Chooses a policy to put beside the runs, where the same seed gives the same episode. */
export function AddRun(): JSX.Element | null {
  const state = useConsole();
  const isOffered = state.policies.value.length > 0 && state.abilities.value.episodes;
  if (!isOffered || state.latest.value === undefined) return null;
  const isJoining = state.joining.value !== undefined;
  return (
    <div class={isJoining ? 'button add-run joining muted' : 'button add-run'}>
      <Icon name="plus" />
      <span>{isJoining ? 'Joining …' : 'Compare'}</span>
      <Select
        aria-label="Compare with"
        value=""
        disabled={isJoining}
        options={[{ value: '', text: 'Compare with …' }, ...policyOptions(state)]}
        onChoose={(policy, list) => {
          list.value = '';
          if (policy) void state.addRun(policy);
        }}
      />
    </div>
  );
}

/** Moves while the section around it has been busy for longer than a moment. */
export function BusyBar(): JSX.Element {
  return <span class="busy-bar" aria-hidden="true" />;
}

export function DriverSelect({ run, label }: { run: Run; label: string }): JSX.Element {
  const state = useConsole();
  const isRecorded = run.driver.value === RECORDED;
  return (
    <Select
      aria-label={label}
      value={run.driver.value}
      options={[
        ...(isRecorded ? [{ value: RECORDED, text: `${playerName(state, run)}, recorded` }] : []),
        ...policyOptions(state),
        { value: BY_HAND, text: 'By hand' },
      ]}
      onChoose={(driver) => state.chooseDriver(driver, run)}
    />
  );
}

const policyOptions = ({ policies }: ConsoleState) =>
  policies.value.map(({ name, title, description }) => ({ value: name, text: title, title: description }));

/** One sentence on what the server of a run is fighting with, in the window that the figures are of. */
export function NarrationLine({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const { value: narration } = useComputed(() => narrationOf(state, run));
  return <Sentence narration={narration} />;
}

export function Sentence({ narration }: { narration: Narration | undefined }): JSX.Element {
  const state = useConsole();
  return (
    <p
      class={`sentence row ${narration?.severity ?? 'calm'}`}
      aria-live={state.playing.value ? 'off' : 'polite'}
    >
      {narration && <Icon name={narration.severity} />}
      <span>
        <b>{narration?.headline}</b> {narration?.detail}
      </span>
    </p>
  );
}

function narrationOf(state: ConsoleState, run: Run): Narration | undefined {
  const frames = run.frames.value;
  const newest = run.played.value - 1;
  if (state.joining.value === run) {
    return calm('Joining.', `${count(newest)} of ${count(state.newest.value)} windows played.`);
  }
  const frame = run.frameAt(state.shownIndex.value);
  if (frame?.index === 0 && newest === 0 && (state.playing.value || run.isBusy.value)) {
    return calm('Starting.', `The first window is being computed, played by ${playerName(state, run)}.`);
  }
  return frame && narrate(frame, frames[frame.index - 1]);
}
