import { useComputed } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import {
  type ChartSpec,
  createColumns,
  presentSeries,
  type SeriesSpec,
  tracesOf,
} from '../charts/chart-spec.ts';
import { RUN_LOOKS } from '../charts/palette.ts';
import { chartOptions } from '../charts/plot-options.ts';
import { type PlotSource, usePlot, usePlotContext } from '../charts/use-plot.ts';
import { type ConsoleState, useConsole } from '../state/console-state.ts';
import { fieldNamed } from '../state/frame.ts';
import { playerName, type Run } from '../state/run.ts';
import { Disclosure } from './controls.tsx';
import { tip } from './figure.tsx';

interface ShownSeries {
  readonly series: SeriesSpec;
  readonly run: Run;
}

/** A chart with its question, and a legend that reads the window under the pointer. */
function ChartPanel({ spec }: { spec: ChartSpec }): JSX.Element | null {
  const state = useConsole();
  const shown = useComputed(() => shownSeries(state, spec));
  const kinds = useComputed(() =>
    shown.value.map(({ series: { label, draw }, run }) => `${label} ${draw} ${run.id}`).join(),
  );
  const isEmpty = useComputed(() => kinds.value === '' && state.latest.value !== undefined);
  const unit = useComputed(() => {
    const latest = state.latest.value;
    return (state.runs.value.length > 1 && spec.comparedUnit) || (latest ? spec.unit(latest) : '');
  });
  const context = usePlotContext();
  const epoch = state.epoch.value;
  const source = useMemo<PlotSource | undefined>(() => {
    void epoch;
    if (kinds.value === '') return undefined;
    const traces = [...Map.groupBy(shown.peek(), ({ run }) => run)].flatMap(([run, of]) =>
      tracesOf(
        of.map(({ series }) => series),
        spec.signed === true,
        () => run.frames.value,
      ),
    );
    const columns = createColumns(traces);
    const limits = () => {
      const latest = state.latest.peek();
      return latest ? (spec.limits?.(latest, state.chosenTask.peek()) ?? []) : [];
    };
    return {
      options: chartOptions(spec, traces, limits, context),
      data() {
        for (const { played } of state.runs.value) void played.value;
        columns.extend();
        return columns.data;
      },
    };
  }, [kinds.value, epoch, context]);
  const box = usePlot(source);
  if (isEmpty.value) return null;
  return (
    <figure class="panel chart stack" aria-label={spec.title}>
      <figcaption class="chart-head row baseline">
        <h2>{spec.title}</h2>
        <p
          class={`fine fill ${spec.definition ? 'clipped' : 'question'}`}
          {...tip(spec.definition ?? spec.question)}
        >
          {spec.definition ?? spec.question}
        </p>
        <p class="fine">{unit}</p>
      </figcaption>
      <dl class={`legend row wrap ${state.runs.value.length > 1 ? 'compared' : ''}`}>
        {shown.value.map((one) => (
          <LegendEntry key={`${one.series.label} ${one.run.id}`} {...one} />
        ))}
      </dl>
      <div class="plot fill" ref={box} aria-hidden="true">
        <NotPlayed />
      </div>
    </figure>
  );
}

export function Charts({ specs }: { specs: readonly ChartSpec[] }): JSX.Element {
  return (
    <>
      {specs.map((spec) => (
        <ChartPanel key={spec.id} spec={spec} />
      ))}
    </>
  );
}

/** Charts below the others that are made when somebody asks for them. */
export function MoreCharts({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <Disclosure look="more-charts" summary={<summary class="bold">More charts</summary>}>
      <div class="charts">{children}</div>
    </Disclosure>
  );
}

/** With one run its series, else the compared quantity of each run. */
function shownSeries(state: ConsoleState, spec: ChartSpec): ShownSeries[] {
  const runs = state.runs.value;
  const [run] = runs;
  if (runs.length === 1) {
    const frame = run.latest.value;
    return frame ? presentSeries(spec, frame, state.chosenTask.value).map((series) => ({ series, run })) : [];
  }
  return runs
    .filter(({ latest }) => latest.value && spec.compared.value(latest.value) !== undefined)
    .map((one) => {
      const series = { ...spec.compared, ...RUN_LOOKS[one.place], label: playerName(state, one) };
      return { series, run: one };
    });
}

function LegendEntry({ series, run }: ShownSeries): JSX.Element {
  const state = useConsole();
  const text = useComputed(() => {
    const frame = run.frameAt(state.shownIndex.value);
    const value = frame && series.value(frame);
    return typeof value === 'number' ? series.format(value) : '–';
  });
  const latest = state.latest.peek();
  const field = series.field && latest && fieldNamed(latest.observation, series.field);
  const definition = series.definition ?? (field && state.definitions.value[field]);
  const look = series.dash ? 'line' : (series.draw ?? 'line');
  return (
    <div class="row nowrap" {...tip(definition)}>
      <dt class="row">
        <LineKey look={look} tone={series.tone} dash={series.dash} />
        <span class="clipped">{series.label}</span>
      </dt>
      <dd>{text}</dd>
    </div>
  );
}

/** Stands in a plot until there is a window to draw. */
export function NotPlayed(): JSX.Element | null {
  const { latest, newest } = useConsole();
  const { value: isEmpty } = useComputed(() => latest.value !== undefined && newest.value === 0);
  return isEmpty ? <p class="not-played small muted nowrap">Drawn from the first window on</p> : null;
}

interface LineKeyProps {
  readonly look: string;
  readonly tone: string;
  readonly dash?: readonly number[];
}

/** Legend key: a piece of the series' line. */
export function LineKey({ look, tone, dash }: LineKeyProps): JSX.Element {
  if (!dash) return <span class={`key ${look}`} style={{ color: `var(--${tone})` }} />;
  return (
    <svg class="key-dash" viewBox="0 0 22 4" aria-hidden="true">
      <path
        d="M0 2h22"
        stroke={`var(--${tone})`}
        stroke-width="3"
        stroke-dasharray={dash.join(' ') || undefined}
      />
    </svg>
  );
}
