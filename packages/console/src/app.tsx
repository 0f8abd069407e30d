import type { JSX } from 'preact';
import { ChartPanel } from './components/chart-panel.tsx';
import { Glossary } from './components/glossary.tsx';
import { KnobPanel } from './components/knob-panel.tsx';
import { NarrationLine } from './components/narration-line.tsx';
import { ProblemBanner } from './components/problem-banner.tsx';
import { ScoreCard } from './components/score-card.tsx';
import { Stage } from './components/stage.tsx';
import { Timeline } from './components/timeline.tsx';
import { Tooltip } from './components/tooltip.tsx';
import { TopBar } from './components/top-bar.tsx';
import { LLMSERVE_CHARTS } from './llmserve/charts.ts';

export function App(): JSX.Element {
  return (
    <>
      <TopBar />
      <main>
        <ProblemBanner />
        <NarrationLine />
        <Stage />
        <ScoreCard />
        <div class="workbench">
          <KnobPanel />
          <div class="charts">
            {LLMSERVE_CHARTS.map((spec) => (
              <ChartPanel key={spec.id} spec={spec} />
            ))}
            <Timeline />
          </div>
        </div>
      </main>
      <Glossary />
      <Tooltip />
    </>
  );
}
