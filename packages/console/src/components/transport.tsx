import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { SPEEDS } from '../state/page-signals.ts';
import { useConsole } from './console-context.ts';
import { Button, PauseIcon, PlayIcon, RestartIcon, StepIcon } from './controls.tsx';

/** Restart, play, step and speed. */
export function Transport(): JSX.Element {
  const state = useConsole();
  const playing = state.playing.value;
  const { value: ready } = useComputed(() => state.latest.value !== undefined);
  const { value: over } = useComputed(() => state.position.value === null && state.areOver.value);
  return (
    <fieldset class="transport">
      <legend class="sr-only">Playback</legend>
      <Button
        look="quiet square"
        text={<RestartIcon />}
        title="Restart this episode"
        aria-label="Restart"
        disabled={!ready}
        onClick={() => void state.restart()}
      />
      <Button
        look="primary play"
        text={
          <>
            {playing ? <PauseIcon /> : <PlayIcon />}
            {playing ? 'Pause' : over ? 'Play again' : 'Play'}
          </>
        }
        title={playing ? 'Pause (space)' : 'Play (space)'}
        disabled={!ready}
        onClick={state.togglePlay}
      />
      <Button
        look="quiet"
        text={
          <>
            <StepIcon />
            <span class="step-label">Step</span>
          </>
        }
        title="One window (right arrow)"
        aria-label="Step"
        disabled={!ready || over}
        onClick={() => void state.step()}
      />
      <div class="speed">
        <select
          aria-label="Speed"
          value={state.speed.value}
          onChange={(event) => {
            state.speed.value = Number(event.currentTarget.value);
          }}
        >
          {SPEEDS.map((speed) => (
            <option key={speed} value={speed}>
              {speed} {speed === 1 ? 'window' : 'windows'}/s
            </option>
          ))}
        </select>
      </div>
    </fieldset>
  );
}
