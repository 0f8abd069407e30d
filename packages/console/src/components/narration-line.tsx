import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { type Narration, narrate, type Severity } from '../llm-server/narration.ts';
import type { ConsoleState } from '../state/console-state.ts';
import type { Run } from '../state/run.ts';
import { useConsole } from './console-context.ts';
import { count } from './format.ts';
import { CalmIcon, FailingIcon, StrainedIcon } from './icons.tsx';
import { runName } from './run-name.ts';

const ICONS: Readonly<Record<Severity, () => JSX.Element>> = {
  calm: CalmIcon,
  strained: StrainedIcon,
  failing: FailingIcon,
};

/** One sentence on what the server of a run is fighting with, in the window that the figures are of. */
export function NarrationLine({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const { value: narration } = useComputed(() => narrationOf(state, run));
  const Icon = narration && ICONS[narration.severity];
  return (
    <p class={`sentence ${narration?.severity ?? 'calm'}`} aria-live={state.playing.value ? 'off' : 'polite'}>
      {Icon && <Icon />}
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
    return {
      severity: 'calm',
      headline: 'Joining.',
      detail: `${count(newest)} of ${count(state.newest.value)} windows played.`,
    };
  }
  const frame = frames[Math.min(state.shownIndex.value, newest)];
  if (frame?.index === 0 && newest === 0 && (state.playing.value || run.isBusy.value)) {
    return {
      severity: 'calm',
      headline: 'Starting.',
      detail: `The first window is being computed, played by ${runName(state, run)}.`,
    };
  }
  return frame && narrate(frame, frames[frame.index - 1]);
}
