import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { Charts, MoreCharts } from './components/chart-panel.tsx';
import { Button, Icon } from './components/controls.tsx';
import { Tooltip } from './components/figure.tsx';
import {
  LazyAnyCharts,
  LazyAnyMoreCharts,
  LazyDrawer,
  LazyFigures,
  LazyOpenedNote,
  LazyOtherCharts,
  LazyScoreCard,
  LazyTokenDialog,
  partsToCome,
} from './components/lazy.tsx';
import { RunStrip } from './components/run-strip.tsx';
import { Stage } from './components/stage.tsx';
import { Timeline } from './components/timeline.tsx';
import { TopBar } from './components/top-bar.tsx';
import { Scrubber } from './components/transport.tsx';
import { KnobPanel } from './knobs/knob-panel.tsx';
import { SERVER_CHARTS } from './llm-server/charts.ts';
import { ENVIRONMENTS } from './state/choices.ts';
import { useConsole } from './state/console-state.ts';
import { isSettled, openPanel } from './state/page-signals.ts';

export function App(): JSX.Element {
  const state = useConsole();
  const { value: server } = useComputed(() => state.latest.value === undefined || state.isServer.value);
  const { value: isOver } = useComputed(() => state.latest.value?.done === true);
  useSettled();
  return (
    <>
      <TopBar />
      <main class={isSettled.value ? '' : 'unsettled'} aria-busy={!isSettled.value}>
        <Lead />
        <ProblemBanner />
        {state.opened.value && <LazyOpenedNote />}
        <RunStrip />
        <Scrubber />
        {server ? <Stage /> : <LazyFigures />}
        {isOver && <LazyScoreCard />}
        <div class="workbench">
          <KnobPanel />
          <div class={server ? 'charts' : 'charts few'}>
            {server ? <Charts specs={SERVER_CHARTS} /> : <LazyAnyCharts />}
            <Timeline />
          </div>
        </div>
        {!server && <LazyAnyMoreCharts />}
        {state.isServer.value && (
          <MoreCharts>
            <LazyOtherCharts />
          </MoreCharts>
        )}
      </main>
      {openPanel.value && <LazyDrawer />}
      {state.needsToken.value && <LazyTokenDialog />}
      <Tooltip />
    </>
  );
}

/** Time without a part to come after which the page has its layout, ms. A choice. */
const SETTLED_AFTER_MS = 50;

/** Shows the page once it has its layout, or a problem to show: until then its parts would move. */
function useSettled(): void {
  const state = useConsole();
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
  }, [isKnown]);
}

/** Says what the page is. */
function Lead(): JSX.Element | null {
  const { environment, abilities } = useConsole();
  const { name = '', description } = environment.value ?? {};
  // Of an environment whose episodes are not replayable the server may be a real one.
  return <p class="lead muted">{(abilities.value.episodes && ENVIRONMENTS[name]?.lead) || description}</p>;
}

/** Something that went wrong, and the way on. */
function ProblemBanner(): JSX.Element | null {
  const problem = useConsole().problem.value;
  if (!problem) return null;
  return (
    <div class="problem row" role="alert">
      <Icon name="failing" />
      <p class="fill">{problem.message}</p>
      <Button text={problem.remedy} onClick={problem.mend} />
    </div>
  );
}
