import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { ChartsView, MoreCharts } from './components/charts-view.tsx';
import { useConsole } from './components/console-context.ts';
import {
  LaterDrawer,
  LaterFigures,
  LaterOpenedNote,
  LaterScoreCard,
  LaterTokenDialog,
  LaterTour,
} from './components/later.ts';
import { ProblemBanner } from './components/problem-banner.tsx';
import { RunStrip } from './components/run-strip.tsx';
import { Scrubber } from './components/scrubber.tsx';
import { Stage } from './components/stage.tsx';
import { Tooltip } from './components/tooltip.tsx';
import { TopBar } from './components/top-bar.tsx';
import { KnobPanel } from './knobs/knob-panel.tsx';
import { isServer } from './state/is-server.ts';
import { openPanel } from './state/open-panel.ts';
import { tourStep } from './state/tour-state.ts';

export function App(): JSX.Element {
  const state = useConsole();
  const { value: server } = useComputed(() => state.latest.value === undefined || isServer(state));
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
          <ChartsView />
        </div>
        <MoreCharts />
      </main>
      {openPanel.value && <LaterDrawer />}
      {state.needsToken.value && <LaterTokenDialog />}
      {tourStep.value !== undefined && <LaterTour />}
      <Tooltip />
    </>
  );
}
