import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Knob } from '../api/action-schema.ts';
import { laneOptions, laneValue } from '../charts/lanes.ts';
import { createColumns } from '../charts/traces.ts';
import { type PlotSource, usePlot } from '../charts/use-plot.ts';
import { KNOB_GUIDE } from '../llmserve/knob-guide.ts';
import { useConsole } from './console-context.ts';
import { amount, count, percent, words } from './format.ts';
import { usePlotContext } from './use-plot-context.ts';

/** What was decided in each window, one lane a knob, with the server's events above. */
export function Timeline(): JSX.Element | null {
  const state = useConsole();
  const knobs = state.knobs.value;
  const episode = state.episode.value;
  const context = usePlotContext();
  const source = useMemo<PlotSource | undefined>(() => {
    void episode;
    if (knobs.length === 0) return undefined;
    const lanes = knobs.map((knob) => ({ knob, doubling: KNOB_GUIDE[knob.name]?.doubling === true }));
    const columns = createColumns(
      lanes.map((lane) => ({ at: (frame) => laneValue(lane, frame.action?.[lane.knob.name]) })),
    );
    return {
      options: laneOptions(lanes, () => state.frames.peek(), context),
      data() {
        void state.played.value;
        columns.extend(state.frames.value);
        return columns.data;
      },
    };
  }, [knobs, episode, context]);
  const box = usePlot(source);
  if (knobs.length === 0) return null;
  return (
    <figure class="panel timeline" aria-label="Decisions">
      <figcaption class="chart-head">
        <h2>Decisions</h2>
        <p class="question">What was turned, and when?</p>
        <ul class="event-key">
          <li class="oom">out of memory</li>
          <li class="reload">reload</li>
          <li class="drain">drain</li>
          <li class="preemption">preempted</li>
        </ul>
      </figcaption>
      <div class="lanes" style={{ '--lanes': knobs.length + 1 }}>
        <dl class="lane-labels">
          <div>
            <dt>Events</dt>
          </div>
          {knobs.map((knob) => (
            <LaneLabel key={knob.name} knob={knob} />
          ))}
        </dl>
        <div class="plot" ref={box} aria-hidden="true" />
      </div>
    </figure>
  );
}

function LaneLabel({ knob }: { knob: Knob }): JSX.Element {
  const guide = KNOB_GUIDE[knob.name];
  const state = useConsole();
  const reading = useComputed(() => laneText(knob, state.shown.value?.action?.[knob.name]));
  return (
    <div>
      <dt>{guide?.label ?? words(knob.name)}</dt>
      <dd>{reading}</dd>
    </div>
  );
}

function laneText(knob: Knob, value: unknown): string {
  if (value === undefined) return '–';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value !== 'number') return String(value);
  if (KNOB_GUIDE[knob.name]?.format === 'percent') return percent(value);
  return knob.kind === 'range' && knob.integer ? count(value) : amount(value);
}
