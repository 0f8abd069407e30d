import { useComputed, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { SERVER_CHARTS } from '../llm-server/charts.ts';
import { isServer } from '../state/is-server.ts';
import { ChartPanel } from './chart-panel.tsx';
import { useConsole } from './console-context.ts';
import { LaterAnyCharts, LaterOtherCharts } from './later.ts';
import { Timeline } from './timeline.tsx';

/** The charts that fit the environment, and the decisions below them. */
export function ChartsView(): JSX.Element {
  const state = useConsole();
  const { value: server } = useComputed(() => state.latest.value === undefined || isServer(state));
  return (
    <div class={server ? 'charts' : 'charts few'}>
      {server ? SERVER_CHARTS.map((spec) => <ChartPanel key={spec.id} spec={spec} />) : <LaterAnyCharts />}
      <Timeline />
    </div>
  );
}

/** Charts of an LLM server's further numbers, for those who ask. */
export function MoreCharts(): JSX.Element | null {
  const state = useConsole();
  const isOpen = useSignal(false);
  const { value: server } = useComputed(() => isServer(state));
  if (!server) return null;
  return (
    <details
      class="more-charts"
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>More numbers</summary>
      {isOpen.value && <LaterOtherCharts />}
    </details>
  );
}
