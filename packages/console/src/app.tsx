import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { Charts, MoreCharts } from './components/chart-panel.tsx';
import { useConsole } from './components/console-context.ts';
import { FailingIcon } from './components/icons.tsx';
import {
  LaterAnyCharts,
  LaterAnyMoreCharts,
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
        <Lead />
        <ProblemBanner />
        {state.opened.value && <LaterOpenedNote />}
        <RunStrip />
        <Scrubber />
        {server ? <Stage /> : <LaterFigures />}
        {isOver && <LaterScoreCard />}
        <div class="workbench">
          <KnobPanel />
          <div class={server ? 'charts' : 'charts few'}>
            {server ? <Charts specs={SERVER_CHARTS} /> : <LaterAnyCharts />}
            <Timeline />
          </div>
        </div>
        {!server && <LaterAnyMoreCharts />}
        {state.isServer.value && (
          <MoreCharts>
            <LaterOtherCharts />
          </MoreCharts>
        )}
      </main>
      {openPanel.value && <LaterDrawer />}
      {state.needsToken.value && <LaterTokenDialog />}
      {tourStep.value !== undefined && <LaterTour />}
      <Tooltip />
    </>
  );
}

/** The environment in a sentence, by its name. Others bring a description of their own. */
const LEADS: Readonly<Record<string, string | undefined>> = {
  llmserve:
    'A simulated LLM inference server. Every few seconds a policy, or you, turns its knobs; at the end the episode is scored.',
  inferencegym:
    'An LLM inference server played from a table of measurements. Each second a policy, or you, turns its knobs; at the end the episode is scored.',
  fleet:
    'A simulated fleet of LLM inference servers. Every 30 s a policy, or you, chooses replicas, routing and admission; at the end the episode is scored in dollars.',
};

/** Says what the page is. */
function Lead(): JSX.Element | null {
  const { environment, abilities } = useConsole();
  const { name = '', description } = environment.value ?? {};
  // Of an environment whose episodes are not replayable the server may be a real one.
  return <p class="lead">{(abilities.value.episodes && LEADS[name]) || description}</p>;
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
