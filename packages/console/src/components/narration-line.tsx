import { useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { timeOf } from '../charts/traces.ts';
import { type Narration, narrate, type Severity } from '../llmserve/narration.ts';
import { episodeWindows } from '../state/episode-length.ts';
import { useConsole } from './console-context.ts';
import { clock, count, words } from './format.ts';
import { CalmIcon, FailingIcon, StrainedIcon } from './icons.tsx';
import { tip } from './tooltip.tsx';

/** A sentence stays this long while the episode plays, so that it can be read. */
const READABLE_MS = 1500;
const ICONS: Readonly<Record<Severity, () => JSX.Element>> = {
  calm: CalmIcon,
  strained: StrainedIcon,
  failing: FailingIcon,
};

/** What the server is fighting with, in one sentence, and where in the episode we are. */
export function NarrationLine(): JSX.Element {
  const state = useConsole();
  const said = useSignal<Narration | undefined>(undefined);
  const saidAt = useRef(0);
  useSignalEffect(() => {
    const frame = state.shown.value;
    const next = frame && narrate(frame, state.frames.peek()[frame.index - 1]);
    const now = performance.now();
    const fluent = state.playing.value && state.pointedAt.value === null;
    if (fluent && now - saidAt.current < READABLE_MS && frame && frame.index > 1) return;
    saidAt.current = now;
    said.value = next;
  });
  const frame = state.shown.value;
  const narration = said.value;
  const Icon = narration && ICONS[narration.severity];
  return (
    <div class={`narration ${narration?.severity ?? 'calm'}`}>
      <p class="sentence" aria-live={state.playing.value ? 'off' : 'polite'}>
        {Icon && <Icon />}
        <span>
          <b>{narration?.headline}</b> {narration?.detail}
        </span>
      </p>
      {frame && (
        <dl class="position">
          {frame.telemetry.phase && (
            <div>
              <dt>Traffic</dt>
              <dd>{words(frame.telemetry.phase)}</dd>
            </div>
          )}
          <div>
            <dt>Window</dt>
            <dd>
              {count(frame.index)}
              <WindowsInAll />
            </dd>
          </div>
          {frame.telemetry.windowSeconds !== undefined && (
            <div {...tip('Simulated time since the start of the episode')}>
              <dt>Time</dt>
              <dd>{clock(timeOf(frame))}</dd>
            </div>
          )}
        </dl>
      )}
    </div>
  );
}

function WindowsInAll(): JSX.Element | null {
  const windows = episodeWindows(useConsole());
  return windows === undefined ? null : <span class="of"> of {count(windows)}</span>;
}
