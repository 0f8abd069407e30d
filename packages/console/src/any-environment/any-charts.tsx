import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { ChartPanel } from '../components/chart-panel.tsx';
import { useConsole } from '../components/console-context.ts';
import { SERVER_CHARTS } from '../llm-server/charts.ts';
import { fieldNamed } from '../state/observed.ts';
import { chartsOfSchema, REWARD_CHART } from './charts.ts';

/** The reward, and a chart for each number that an environment of which nothing is known observes. */
export function AnyCharts(): JSX.Element {
  const state = useConsole();
  const specs = useComputed(() => [
    REWARD_CHART,
    ...chartsOfSchema(state.schemas.value?.observation ?? {}, new Set()),
  ]);
  return (
    <>
      {specs.value.map((spec) => (
        <ChartPanel key={spec.id} spec={spec} />
      ))}
    </>
  );
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
      {specs.value.map((spec) => (
        <ChartPanel key={spec.id} spec={spec} />
      ))}
    </div>
  );
}
