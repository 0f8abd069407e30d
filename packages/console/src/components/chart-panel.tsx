import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { type ChartSpec, presentSeries, type SeriesSpec } from '../charts/chart-spec.ts';
import { chartOptions } from '../charts/plot-options.ts';
import { createColumns, tracesOf } from '../charts/traces.ts';
import { type PlotSource, usePlot } from '../charts/use-plot.ts';
import { useConsole } from './console-context.ts';
import { tip } from './tooltip.tsx';
import { usePlotContext } from './use-plot-context.ts';

/** A chart with its question, and a legend that reads the window under the pointer. */
export function ChartPanel({ spec }: { spec: ChartSpec }): JSX.Element | null {
  const state = useConsole();
  const series = useComputed(() => (state.latest.value ? presentSeries(spec, state.latest.value) : []));
  const kinds = useComputed(() => series.value.map(({ label, draw }) => `${label} ${draw}`).join());
  const isEmpty = useComputed(() => kinds.value === '' && state.latest.value !== undefined);
  const context = usePlotContext();
  const episode = state.episode.value;
  const source = useMemo<PlotSource | undefined>(() => {
    void episode;
    if (kinds.value === '') return undefined;
    const traces = tracesOf(series.peek(), spec.signed === true);
    const columns = createColumns(traces);
    const limits = () => {
      const latest = state.latest.peek();
      return latest ? (spec.limits?.(latest) ?? []) : [];
    };
    return {
      options: chartOptions(spec, traces, limits, context),
      data() {
        void state.played.value;
        columns.extend(state.frames.value);
        return columns.data;
      },
    };
  }, [kinds.value, episode, context]);
  const box = usePlot(source);
  if (isEmpty.value) return null;
  return (
    <figure class="panel chart" aria-label={spec.title}>
      <figcaption class="chart-head">
        <h2>{spec.title}</h2>
        <p class="question">{spec.question}</p>
        <p class="axis-unit">{spec.unit}</p>
      </figcaption>
      <dl class="legend">
        {series.peek().map((one) => (
          <LegendEntry key={one.label} series={one} />
        ))}
      </dl>
      <div class="plot" ref={box} aria-hidden="true" />
    </figure>
  );
}

function LegendEntry({ series }: { series: SeriesSpec }): JSX.Element {
  const state = useConsole();
  const reading = useComputed(() => {
    const frame = state.shown.value;
    const value = frame && series.value(frame);
    return typeof value === 'number' ? series.format(value) : '–';
  });
  const definition = series.definition ?? (series.field && state.definitions.value[series.field]);
  return (
    <div {...tip(definition)}>
      <dt>
        <span class={`key ${series.draw ?? 'line'}`} style={{ color: `var(--tone-${series.tone})` }} />
        {series.label}
      </dt>
      <dd>{reading}</dd>
    </div>
  );
}
