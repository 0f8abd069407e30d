import { useComputed, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
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
  partsToCome,
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
      <main class={useSettled() ? '' : 'unsettled'}>
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

/** Time without a part to come after which the page has its layout, ms. A choice. */
const SETTLED_AFTER_MS = 50;

/** Whether the page has its layout, or a problem to show: until then its parts would move, and are not shown. */
function useSettled(): boolean {
  const state = useConsole();
  const isSettled = useSignal(false);
  const isKnown = useComputed(
    () =>
      state.problem.value !== undefined ||
      state.needsToken.value ||
      (state.latest.value !== undefined && partsToCome.value === 0),
  ).value;
  useEffect(() => {
    if (!isKnown) return;
    const timer = setTimeout(() => {
      isSettled.value = true;
    }, SETTLED_AFTER_MS);
    return () => clearTimeout(timer);
  }, [isKnown, isSettled]);
  return isSettled.value;
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
