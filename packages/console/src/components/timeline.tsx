import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Knob } from '../api/action-schema.ts';
import { createColumns } from '../charts/chart-spec.ts';
import { EVENTS, hasLane, laneOptions, laneValue } from '../charts/lanes.ts';
import { type PlotSource, usePlot, usePlotContext } from '../charts/use-plot.ts';
import { KNOB_GUIDE, valueText } from '../knobs/knob-values.ts';
import { useConsole } from '../state/console-state.ts';
import { NotPlayed } from './chart-panel.tsx';
import { words } from './format.ts';

/** The decisions of each window, one lane a knob, with the server's events above. */
export function Timeline(): JSX.Element | null {
  const state = useConsole();
  const knobs = state.knobs.value.filter(hasLane);
  const names = knobs.map(({ name }) => name).join();
  const { run } = state;
  const epoch = `${run.value.id} ${state.epoch.value}`;
  const context = usePlotContext();
  const source = useMemo<PlotSource | undefined>(() => {
    void epoch;
    if (knobs.length === 0) return undefined;
    const lanes = knobs.map((knob) => ({ knob, doubling: KNOB_GUIDE[knob.name]?.doubling === true }));
    const columns = createColumns(
      lanes.map((lane) => ({
        at: (frame) => laneValue(lane, frame.action?.[lane.knob.name]),
        frames: () => run.peek().frames.value,
      })),
    );
    return {
      options: laneOptions(lanes, () => state.frames.peek(), context),
      data() {
        void run.value.played.value;
        columns.extend();
        return columns.data;
      },
    };
  }, [names, epoch, context]);
  const box = usePlot(source);
  if (knobs.length === 0) return null;
  return (
    <figure class="panel timeline stack" aria-label="Decisions">
      <figcaption class="chart-head row baseline">
        <h2>Decisions</h2>
        <p class="question fine fill">What was turned, and when?</p>
        {state.isServer.value && (
          <ul class="event-key muted row">
            {Object.values(EVENTS).map((event) => (
              <li key={event.text} data-mark={event.mark} style={{ '--mark': `var(--${event.tone})` }}>
                {event.text}
              </li>
            ))}
          </ul>
        )}
      </figcaption>
      <div class="lanes" style={{ '--lanes': knobs.length + 1 }}>
        <dl class="lane-labels">
          <div class="row">
            <dt>{state.isServer.value && 'Events'}</dt>
          </div>
          {knobs.map((knob) => (
            <LaneLabel key={knob.name} knob={knob} />
          ))}
        </dl>
        <div class="plot fill" ref={box} aria-hidden="true">
          <NotPlayed />
        </div>
      </div>
    </figure>
  );
}

function LaneLabel({ knob }: { knob: Knob }): JSX.Element {
  const guide = KNOB_GUIDE[knob.name];
  const state = useConsole();
  const reading = useComputed(() => valueText(knob, state.shown.value?.action?.[knob.name]));
  return (
    <div class="row between">
      <dt>{guide?.label ?? words(knob.name)}</dt>
      <dd>{reading}</dd>
    </div>
  );
}
