import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import type { ChartSpec } from '../charts/chart-spec.ts';
import { ChartPanel } from '../components/chart-panel.tsx';
import { useConsole } from '../components/console-context.ts';
import { Figure } from '../components/figure.tsx';
import { amount, count, words } from '../components/format.ts';
import { addStyles, lazy } from '../components/later.tsx';
import { FLEET_CHARTS } from '../fleet/fleet-charts.ts';
import { fleetReport } from '../fleet/fleet-report.ts';
import { SERVER_CHARTS } from '../llm-server/charts.ts';
import { fieldNamed } from '../state/observed.ts';
import styles from '../styles/figures.css?inline';
import { chartsOfSchema, NO_QUANTITY, REWARD_CHART } from './any-charts.ts';

addStyles(styles);

/** Longer texts are cut; the raw answer has them whole. */
const LONGEST_TEXT = 60;

const LaterFleetStage = lazy(async () => (await import('../fleet/fleet-stage.tsx')).FleetStage);

/** True where the environment is a fleet, by what its windows report. */
function useIsFleet(): boolean {
  const state = useConsole();
  const { value } = useComputed(
    () => state.latest.value !== undefined && fleetReport(state.latest.value.metadata) !== undefined,
  );
  return value;
}

/** The environment now: a fleet, or what one of which nothing is known observes. */
export function AnyFigures(): JSX.Element | null {
  return useIsFleet() ? <LaterFleetStage /> : <ObservedFields />;
}

/** The latest observation, each field with its name. */
function ObservedFields(): JSX.Element | null {
  const state = useConsole();
  const { value: names } = useComputed(() =>
    Object.keys(state.shown.value?.observation ?? {})
      .filter((name) => name !== 'metadata' && name !== 'reward' && name !== 'done')
      .join('\n'),
  );
  if (names === '') return null;
  return (
    <section class="panel figures" aria-label="The environment now">
      <div>
        {names.split('\n').map((name) => (
          <ObservedField key={name} name={name} />
        ))}
      </div>
    </section>
  );
}

function ObservedField({ name }: { name: string }): JSX.Element {
  const state = useConsole();
  const text = useComputed(() => valueText(name, state.shown.value?.observation[name]));
  return <Figure label={words(name)} field={name} figure={text} />;
}

function valueText(name: string, value: unknown): string {
  if (typeof value === 'number') {
    if (NO_QUANTITY.test(name)) return String(Math.trunc(value));
    return Number.isInteger(value) ? count(value) : amount(value);
  }
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '–');
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}

/** Charts of a fleet; else the reward, and a chart for each number that the environment observes. */
export function AnyCharts(): JSX.Element {
  const state = useConsole();
  const isFleet = useIsFleet();
  const specs = useComputed(() => [
    REWARD_CHART,
    ...chartsOfSchema(state.schemas.value?.observation ?? {}, new Set()),
  ]);
  return <Charts specs={isFleet ? FLEET_CHARTS : specs.value} />;
}

/** Charts of the numbers that the charts of an LLM server leave out. */
export function OtherCharts(): JSX.Element {
  const state = useConsole();
  const specs = useComputed(() => {
    const frame = state.frames.value[0];
    const shown = SERVER_CHARTS.flatMap((spec) => (frame ? spec.series(frame, undefined) : [])).flatMap(
      ({ field }) => (field && fieldNamed(frame.observation, field)) || [],
    );
    return chartsOfSchema(state.schemas.value?.observation ?? {}, new Set(shown));
  });
  return (
    <div class="charts">
      <Charts specs={specs.value} />
    </div>
  );
}

function Charts({ specs }: { specs: readonly ChartSpec[] }): JSX.Element {
  return (
    <>
      {specs.map((spec) => (
        <ChartPanel key={spec.id} spec={spec} />
      ))}
    </>
  );
}
