import { useComputed, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ChartPanel } from './components/chart-panel.tsx';
import { useConsole } from './components/console-context.ts';
import { FailingIcon } from './components/icons.tsx';
import {
  LaterAnyCharts,
  LaterDrawer,
  LaterFigures,
  LaterOpenedNote,
  LaterOtherCharts,
  LaterScoreCard,
  LaterTokenDialog,
  LaterTour,
} from './components/later.tsx';
import { RunStrip } from './components/run-strip.tsx';
import { Scrubber } from './components/scrubber.tsx';
import { Stage } from './components/stage.tsx';
import { Timeline } from './components/timeline.tsx';
import { Tooltip } from './components/tooltip.tsx';
import { TopBar } from './components/top-bar.tsx';
import { KnobPanel } from './knobs/knob-panel.tsx';
import { SERVER_CHARTS } from './llm-server/charts.ts';
import { openPanel, tourStep } from './state/overlays.ts';

export function App(): JSX.Element {
  const state = useConsole();
  const { value: server } = useComputed(() => state.latest.value === undefined || state.isServer.value);
  const { value: isOver } = useComputed(() => state.latest.value?.done === true);
  return (
    <>
      <TopBar />
      <main>
        <ProblemBanner />
        {state.opened.value && <LaterOpenedNote />}
        <RunStrip />
        <Scrubber />
        {server ? <Stage /> : <LaterFigures />}
        {isOver && <LaterScoreCard />}
        <div class="workbench">
          <KnobPanel />
          <div class={server ? 'charts' : 'charts few'}>
            {server ? (
              SERVER_CHARTS.map((spec) => <ChartPanel key={spec.id} spec={spec} />)
            ) : (
              <LaterAnyCharts />
            )}
            <Timeline />
          </div>
        </div>
        {state.isServer.value && <MoreCharts />}
      </main>
      {openPanel.value && <LaterDrawer />}
      {state.needsToken.value && <LaterTokenDialog />}
      {tourStep.value !== undefined && <LaterTour />}
      <Tooltip />
    </>
  );
}

/** Something that went wrong, and the way on. */
function ProblemBanner(): JSX.Element | null {
  const problem = useConsole().problem.value;
  if (!problem) return null;
  return (
    <div class="problem" role="alert">
      <FailingIcon />
      <p>{problem.message}</p>
      <button type="button" class="button" onClick={problem.mend}>
        {problem.remedy}
      </button>
    </div>
  );
}

/** Charts of an LLM server's further numbers, for those who ask. */
function MoreCharts(): JSX.Element {
  const isOpen = useSignal(false);
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
