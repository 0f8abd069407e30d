import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { timeOf } from '../charts/chart-spec.ts';
import { isKnown } from '../state/choices.ts';
import { useConsole } from '../state/console-state.ts';
import { SPEEDS } from '../state/page-signals.ts';
import { Button, Icon, Select } from './controls.tsx';
import { tip } from './figure.tsx';
import { clock, count, words } from './format.ts';

export function Transport(): JSX.Element {
  const state = useConsole();
  const playing = state.playing.value;
  const isOurs = isKnown(state.environment.value);
  const { value: ready } = useComputed(() => state.latest.value !== undefined);
  const { value: over } = useComputed(() => state.position.value === null && state.areOver.value);
  return (
    <fieldset class="transport">
      <legend class="sr-only">Playback</legend>
      <Button
        look="quiet square"
        text={<Icon name="restart" label="Restart" />}
        title="Restart this episode"
        aria-label="Restart"
        disabled={!ready}
        onClick={() => void state.restart()}
      />
      <Button
        look="primary play"
        text={
          <>
            {playing ? <Icon name="pause" /> : <Icon name="play" />}
            {playing ? 'Pause' : over ? 'Play again' : 'Play'}
          </>
        }
        title={playing ? 'Pause (space)' : 'Play (space)'}
        disabled={!ready}
        onClick={state.togglePlay}
      />
      <Button
        look="quiet square"
        text={<Icon name="step" label="Step" />}
        title="One window (right arrow)"
        aria-label="Step"
        disabled={!ready || over}
        onClick={() => void state.step()}
      />
      <Select
        aria-label="Speed"
        value={state.speed.value}
        options={SPEEDS.map((speed) => ({
          value: speed,
          text: `${speed} ${isOurs ? 'window' : 'step'}${speed === 1 ? '' : 's'}/s`,
        }))}
        onChoose={(speed) => {
          state.speed.value = Number(speed);
        }}
      />
    </fieldset>
  );
}

/** Position in the episode: winds back through the played windows, and branches off from there. */
export function Scrubber(): JSX.Element | null {
  const state = useConsole();
  const index = useComputed(() => state.position.value ?? state.newest.value);
  const newest = state.newest.value;
  const isPast = state.position.value !== null;
  const windows = state.windows.value;
  const all = Math.max(windows ?? newest, newest, 1);
  const frame = state.shown.value;
  if (!frame) return null;
  const { phase, windowSeconds } = frame.telemetry;
  const shown = (
    <>
      {count(state.shownIndex.value)}
      {windows !== undefined && <span class="of"> of {count(windows)}</span>}
    </>
  );
  const places = [
    ['Traffic', 'What the arriving requests are like now; the policy is not told', phase && words(phase)],
    ['Window', 'The policy decides once a window', shown],
    ['Time', 'Simulated time since the start of the episode', windowSeconds ? clock(timeOf(frame)) : ''],
  ] as const;
  const done = (index.value / all) * 100;
  const reach = (newest / all) * 100;
  return (
    <section class="scrubber row" aria-label="Timeline">
      <input
        type="range"
        aria-label="Window shown"
        aria-valuetext={`Window ${index.value} of ${newest} played`}
        min={0}
        max={all}
        step={1}
        value={index.value}
        style={{ '--filled': `${done}%`, '--reach': `${reach}%` }}
        onInput={(event) => {
          state.seek(event.currentTarget.valueAsNumber);
          event.currentTarget.value = String(state.position.value ?? state.newest.value);
        }}
      />
      {state.zoomed.value && (
        <Button
          look="small"
          text="Whole episode"
          onClick={() => {
            state.zoomed.value = null;
          }}
        />
      )}
      {isPast && (
        <div class="gap">
          <Button look="small" text="Back to now" onClick={() => state.seek(Infinity)} />
          {state.abilities.value.episodes && index.value < newest && (
            <Button
              look="small"
              text="Play on from here"
              data-tip="Drops what came after this window and plays on from it: what if?"
              onClick={() => void state.branch()}
            />
          )}
        </div>
      )}
      <dl class="position small wrap nowrap">
        {places.map(
          ([name, meaning, place]) =>
            place && (
              <div key={name} {...tip(meaning)}>
                <dt>{name}</dt>
                <dd>{place}</dd>
              </div>
            ),
        )}
      </dl>
    </section>
  );
}
