import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import type { ChartSpec } from '../charts/chart-spec.ts';
import { Charts, MoreCharts } from '../components/chart-panel.tsx';
import { Figure } from '../components/figure.tsx';
import { amount, count, words } from '../components/format.ts';
import { addStyles, lazy } from '../components/lazy.tsx';
import { SERVER_CHARTS } from '../llm-server/charts.ts';
import { useConsole } from '../state/console-state.ts';
import styles from '../styles/environment.css?inline';
import {
  chartsOfSchema,
  FURTHER_SERVER_CHARTS,
  NO_QUANTITY,
  REWARD_CHART,
  withOtherCharts,
} from './further-charts.ts';

addStyles(styles);

/** Longer texts are cut; the raw answer has them whole. */
const LONGEST_TEXT = 60;

const fleet = () => import('../fleet/fleet-stage.tsx');
const LazyFleetStage = lazy(async () => (await fleet()).FleetStage);
const LazyFleetCharts = lazy(async () => (await fleet()).FleetCharts);

/** The environment now: a fleet, or what one of which nothing is known observes. */
export function AnyFigures(): JSX.Element | null {
  return useConsole().isFleet.value ? <LazyFleetStage /> : <ObservedFields />;
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
      {names.split('\n').map((name) => (
        <ObservedField key={name} name={name} />
      ))}
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

/** Charts that the page shows at first. */
const FIRST_CHARTS = 3;

function useSchemaCharts(): readonly ChartSpec[] {
  const state = useConsole();
  return useComputed(() => [
    REWARD_CHART,
    ...chartsOfSchema(state.schemas.value?.observation ?? {}, new Set()),
  ]).value;
}

/** The first charts of a fleet; else of the reward and of the first numbers that the environment observes. */
export function AnyCharts(): JSX.Element | null {
  const specs = useSchemaCharts();
  return useConsole().isFleet.value ? <LazyFleetCharts /> : <Charts specs={specs.slice(0, FIRST_CHARTS)} />;
}

/** All further charts, for those who ask. */
export function AnyMoreCharts(): JSX.Element | null {
  const specs = useSchemaCharts().slice(FIRST_CHARTS);
  const isFleet = useConsole().isFleet.value;
  if (!isFleet && specs.length === 0) return null;
  return <MoreCharts>{isFleet ? <LazyFleetCharts further /> : <Charts specs={specs} />}</MoreCharts>;
}

/** Further charts of an LLM server, and those of the numbers that its own charts leave out. */
export function OtherCharts(): JSX.Element {
  const state = useConsole();
  const specs = useComputed(() => withOtherCharts(state, SERVER_CHARTS, FURTHER_SERVER_CHARTS));
  return <Charts specs={specs.value} />;
}
