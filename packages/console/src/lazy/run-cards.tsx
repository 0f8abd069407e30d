import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { RUN_LOOKS } from '../charts/palette.ts';
import { LineKey } from '../components/chart-panel.tsx';
import { Button, Icon } from '../components/controls.tsx';
import { Figure } from '../components/figure.tsx';
import { count, percent, signed } from '../components/format.ts';
import { addStyles } from '../components/lazy.tsx';
import { AddRun, BusyBar, DriverSelect, NarrationLine, Sentence } from '../components/run-strip.tsx';
import { attainmentOf, type FleetReport, fleetReport, narrateFleet } from '../fleet/fleet-report.ts';
import { useConsole } from '../state/console-state.ts';
import { observed } from '../state/frame.ts';
import { playerName, RUN_PLACES, type Run } from '../state/run.ts';
import styles from '../styles/run-cards.css?inline';

addStyles(styles);

/** The runs side by side, a card each. */
export function RunCards(): JSX.Element {
  const runs = useConsole().runs.value;
  return (
    <section class="run-cards" aria-label="Runs side by side">
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
  const frame = useComputed(() => run.frames.value[Math.min(state.shownIndex.value, run.played.value - 1)]);
  const total = useComputed(() => signed(frame.value?.totalReward ?? 0));
  const inTime = useComputed(() => {
    const share = frame.value && observed(frame.value, 'slo_compliance_rate');
    return share === undefined ? '–' : percent(share);
  });
  const waiting = useComputed(() => count((frame.value && observed(frame.value, 'queue_depth')) ?? 0));
  const server = state.isServer.value;
  const fleet = useComputed(() => frame.value && fleetReport(frame.value.metadata)).value;
  return (
    <article
      class={isFocused ? 'panel run-card focused' : 'panel run-card'}
      style={{ '--run': `var(--tone-${tone})` }}
      aria-label={name}
      aria-busy={run.isBusy}
    >
      <header>
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
        <Figure large label="Return" definition="The sum of the rewards so far" figure={total} />
        {server && <Figure label="In time" field="slo_compliance_rate" figure={inTime} />}
        {server && <Figure label="Waiting" field="queue_depth" figure={waiting} />}
        {fleet && <FleetFigures fleet={fleet} />}
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

function FleetFigures({ fleet }: { fleet: FleetReport }): JSX.Element {
  const share = attainmentOf(fleet);
  return (
    <>
      <Figure
        label="In time"
        definition="Share of the answered and refused requests that met their objectives"
        figure={share === undefined ? '–' : percent(share)}
      />
      <Figure
        label="Replicas"
        definition="Replicas that start, serve or drain"
        figure={count(fleet.replicas.length)}
      />
    </>
  );
}

/** One sentence on a run: of a fleet its own, else that of a server. */
export function RunSentence({ run }: { run: Run }): JSX.Element {
  const state = useConsole();
  const { value: narration } = useComputed(() => {
    const frame = run.frames.value[Math.min(state.shownIndex.value, run.played.value - 1)];
    const report = frame && fleetReport(frame.metadata);
    return state.joining.value !== run && report && narrateFleet(frame, report);
  });
  return narration ? <Sentence narration={narration} /> : <NarrationLine run={run} />;
}
