import { escapeText, lineChartSvg } from '@servegym/tuning/report';
import type { Algorithm } from './training-plan.ts';

/** One line of `metrics.jsonl`. */
export interface MetricsLine {
  /** Windows learned from so far. */
  readonly steps: number;
  /** Mean return of the episodes that ended since the last line; `null` when none did. */
  readonly mean_return: number | null;
  readonly [metric: string]: number | null;
}

const TITLES: Readonly<Record<Algorithm, string>> = {
  ppo: 'PPO',
  distill: 'PPO after distillation',
  cem: 'Cross-entropy search',
  static: 'Search of a constant',
};

/** What the learning curve of a run is called. */
export function learningCurveTitle(algorithm: Algorithm, task: string | number, seed: number): string {
  return `${TITLES[algorithm]} on ${task}, seed ${seed}`;
}

/** Mean return of the last episodes that ended; `null` when none did. */
export function finalReturn(lines: readonly MetricsLine[]): number | null {
  return lines.findLast((line) => line.mean_return !== null)?.mean_return ?? null;
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
