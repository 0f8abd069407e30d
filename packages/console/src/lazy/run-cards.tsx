import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { RUN_LOOKS } from '../charts/palette.ts';
import { LineKey } from '../components/chart-panel.tsx';
import { Button, Icon } from '../components/controls.tsx';
import { Figure } from '../components/figure.tsx';
import { count, percent } from '../components/format.ts';
import { addStyles } from '../components/lazy.tsx';
import { AddRun, BusyBar, DriverSelect, NarrationLine, Sentence } from '../components/run-strip.tsx';
import { Observed } from '../components/stage.tsx';
import { ATTAINMENT, BILLED, narrateFleet } from '../fleet/fleet-report.ts';
import { REWARD } from '../llm-server/charts.ts';
import { useConsole } from '../state/console-state.ts';
import { playerName, RUN_PLACES, type Run } from '../state/run.ts';
import styles from '../styles/run-cards.css?inline';

addStyles(styles);

export function RunCards(): JSX.Element {
  const runs = useConsole().runs.value;
  return (
    <section class="run-cards wrap" aria-label="Runs side by side">
      {runs.map((run) => (
        <RunCard key={run.id} run={run} />
      ))}
      {runs.length < RUN_PLACES && <AddRun />}
    </section>
  );
}

function RunCard({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const { tone, dash } = RUN_LOOKS[run.place];
  const isFocused = state.run.value === run;
  const name = playerName(state, run);
  const frame = useComputed(() => run.frameAt(state.shownIndex.value));
  const server = state.isServer.value;
  const fleet = state.isFleet.value;
  return (
    <article
      class={`panel run-card stack ${isFocused ? 'focused' : ''}`}
      style={{ '--run': `var(--${tone})` }}
      aria-label={name}
      aria-busy={run.isBusy}
    >
      <header class="row gap">
        <LineKey look="line" tone={tone} dash={dash} />
        <DriverSelect run={run} label={`Run ${run.place + 1} played by`} />
        <Button
          look="small"
          text={isFocused ? 'Shown' : 'Show'}
          aria-pressed={isFocused}
          title={`Show the server of this run (${run.place + 1})`}
          onClick={() => state.focus(run)}
        />
        <Button
          look="bare"
          text={<Icon name="close" />}
          aria-label={`Remove ${name}`}
          onClick={() => state.removeRun(run)}
        />
      </header>
      <div class="run-figures">
        <Observed large of={frame} {...REWARD.compared} label="Return" />
        {server && <Observed of={frame} label="In time" field="slo_compliance_rate" format={percent} />}
        {server && <Observed of={frame} label="Waiting" field="queue_depth" format={count} />}
        {fleet && (
          <>
            <Observed of={frame} {...ATTAINMENT} />
            <Observed of={frame} {...BILLED} label="Replicas" />
          </>
        )}
        {run.grade.value && (
          <Figure
            label="Score"
            definition="From 0 to 1; the server replays the episode to grade it"
            figure={run.grade.value.score.toFixed(3)}
          />
        )}
      </div>
      <RunSentence run={run} />
      <BusyBar />
    </article>
  );
}

/** One sentence on a run: of a fleet its own, else that of a server. */
export function RunSentence({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const { value: narration } = useComputed(() => {
    const frame = run.frameAt(state.shownIndex.value);
    return state.joining.value !== run && frame && narrateFleet(frame);
  });
  return narration ? <Sentence narration={narration} /> : <NarrationLine run={run} />;
}
