import type { Algorithm, MetricsLine, TrainingRun } from '@servegym/agents';
import { escapeText, lineChartSvg } from '@servegym/tuning/report';

const TITLES: Readonly<Record<Algorithm, string>> = {
  ppo: 'PPO',
  distill: 'PPO after distillation',
  cem: 'Cross-entropy search',
  static: 'Search of a constant',
};

/** Title of the learning curve of a run. */
export function learningCurveTitle({
  algorithm,
  task,
  seed,
}: Pick<TrainingRun, 'algorithm' | 'task' | 'seed'>): string {
  return `${TITLES[algorithm]} on ${task}, seed ${seed}`;
}

/** The learning curve of a run as SVG. */
export function learningCurveSvg(title: string, lines: readonly MetricsLine[]): string {
  return chart(title, 'mean return of an episode', 'mean_return', lines);
}

/** Charts of all that was measured during a run, the learning curve first, as a page that needs nothing else. */
export function learningCurvePage(title: string, lines: readonly MetricsLine[]): string {
  const metrics = Object.keys(lines.at(-1) ?? { mean_return: null }).filter((name) => name !== 'steps');
  const charts = ['mean_return', ...metrics.filter((name) => name !== 'mean_return')].map((name) =>
    chart(name.replaceAll('_', ' '), name.replaceAll('_', ' '), name, lines),
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeText(title)}</title>
<style>
:root { color-scheme: light dark; font-family: sans-serif }
body { margin: 1.5rem }
main { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)) }
svg { width: 100%; height: auto; border-radius: 6px }
</style>
<h1>${escapeText(title)}</h1>
<main>
${charts.join('')}</main>
</html>
`;
}

function chart(title: string, yLabel: string, metric: string, lines: readonly MetricsLine[]): string {
  const points = lines.flatMap((line) => {
    const y = line[metric];
    return typeof y === 'number' && Number.isFinite(y) ? [{ x: line.steps, y }] : [];
  });
  return lineChartSvg({ title, xLabel: 'windows played', yLabel, points });
}
