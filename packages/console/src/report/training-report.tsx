import type { JSX } from 'preact';
import { type XYChart, XYChartBox } from '../charts/xy-chart.tsx';
import { amount, count } from '../components/format.ts';
import type { TrainingMetrics } from './report.ts';

/** Charts of all that was measured during a run, the learning curve first. */
export function TrainingReport({ metrics }: { metrics: readonly TrainingMetrics[] }): JSX.Element {
  const names = new Set(['mean_return', ...Object.keys(metrics.at(-1) ?? {})]);
  names.delete('steps');
  return (
    <div class="report-charts">
      {[...names].map((name) => (
        <figure key={name} class="panel plan-answer" aria-label={name.replaceAll('_', ' ')}>
          <h2>{name.replaceAll('_', ' ')}</h2>
          <XYChartBox chart={metricChart(metrics, name)} />
        </figure>
      ))}
    </div>
  );
}

/** Weight of a new point in the smoothed line. */
const SMOOTHING = 0.2;

/** A metric over a run: every update that has it, and a smoothed line. */
export function metricChart(metrics: readonly TrainingMetrics[], name: string): XYChart {
  const points = metrics.flatMap(({ steps, [name]: value }) =>
    typeof value === 'number' && Number.isFinite(value) ? [[steps, value] as const] : [],
  );
  const values = points.length === 0 ? [0, 1] : points.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = 0.05 * (high - low || 1);
  let mean = points[0]?.[1] ?? 0;
  const smoothed = points.map(([steps, value]) => {
    mean += SMOOTHING * (value - mean);
    return [steps, mean] as const;
  });
  return {
    label: `${name.replaceAll('_', ' ')} over the windows played`,
    x: { title: 'windows played', domain: [0, points.at(-1)?.[0] ?? 1], text: count },
    y: {
      title: name === 'mean_return' ? 'mean return of an episode' : name.replaceAll('_', ' '),
      domain: [low - room, high + room],
      text: amount,
    },
    lines: [
      { look: 'faint', points },
      { look: 'first', points: smoothed },
    ],
  };
}
