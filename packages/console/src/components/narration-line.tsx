import { useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { type Narration, narrate, type Severity } from '../llm-server/narration.ts';
import type { Run } from '../state/run.ts';
import { useConsole } from './console-context.ts';
import { CalmIcon, FailingIcon, StrainedIcon } from './icons.tsx';

/** A sentence stays this long while the episode plays, so that it can be read. */
const READABLE_MS = 1500;
const ICONS: Readonly<Record<Severity, () => JSX.Element>> = {
  calm: CalmIcon,
  strained: StrainedIcon,
  failing: FailingIcon,
};

/** What a run's server is fighting with, in one sentence. */
export function NarrationLine({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const said = useSignal<Narration | undefined>(undefined);
  const saidAt = useRef(0);
  useSignalEffect(() => {
    const frames = run.frames.value;
    const frame = frames[Math.min(state.shownIndex.value, run.played.value - 1)];
    const next = frame && narrate(frame, frames[frame.index - 1]);
    const now = performance.now();
    const fluent = state.playing.value && state.pointedAt.value === null;
    if (fluent && now - saidAt.current < READABLE_MS && frame && frame.index > 1 && !frame.done) return;
    saidAt.current = now;
    said.value = next;
  });
  const narration = said.value;
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
