import type { MetricsLine } from '@servegym/agents';
import type { Chart, Section } from '@servegym/operators/report';

/** Charts of all that was measured during a run, the learning curve first. */
export function metricSections(metrics: readonly MetricsLine[]): Section[] {
  const names = new Set(['mean_return', ...Object.keys(metrics.at(-1) ?? {})]);
  names.delete('steps');
  return Array.from(names, (name) => ({
    ...{ title: name.replaceAll('_', ' '), chart: metricChart(metrics, name), look: 'half' },
  }));
}

/** Weight of a new point in the smoothed line. */
const SMOOTHING = 0.2;

/** A metric over a run: every update that has it, and a smoothed line. */
export function metricChart(metrics: readonly MetricsLine[], name: string): Chart {
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
  const title = name.replaceAll('_', ' ');
  return {
    label: `${title} over the windows played`,
    x: { title: 'windows played', domain: [0, points.at(-1)?.[0] ?? 1], unit: 'count' },
    y: {
      title: name === 'mean_return' ? 'mean return of an episode' : title,
      ...{ domain: [low - room, high + room], unit: 'amount' },
    },
    lines: [
      { look: 'faint', points },
      { look: 'first', points: smoothed },
    ],
  };
}
