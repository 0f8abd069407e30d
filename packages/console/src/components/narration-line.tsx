import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { narrate, type Severity } from '../llm-server/narration.ts';
import type { Run } from '../state/run.ts';
import { useConsole } from './console-context.ts';
import { CalmIcon, FailingIcon, StrainedIcon } from './icons.tsx';

const ICONS: Readonly<Record<Severity, () => JSX.Element>> = {
  calm: CalmIcon,
  strained: StrainedIcon,
  failing: FailingIcon,
};

/** One sentence on what the server of a run is fighting with, in the window that the figures are of. */
export function NarrationLine({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const { value: narration } = useComputed(() => {
    const frames = run.frames.value;
    const frame = frames[Math.min(state.shownIndex.value, run.played.value - 1)];
    return frame && narrate(frame, frames[frame.index - 1]);
  });
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
