import type { Evaluation, PairedDifference, Standings } from '@servegym/agents';
import { alignedRows } from '@servegym/operators/report';
import {
  type EvaluationContext,
  GAIN_HEADER,
  GAIN_LEGEND,
  gainCells,
  gainsJson,
  playedOn,
} from '../evaluate/evaluation-report.ts';

/** Policies, as they were named, and how they did. */
export interface ComparisonResults {
  readonly names: readonly string[];
  readonly evaluations: readonly Evaluation[];
  readonly standings: Standings;
}

/** The object that `compare --json` prints. Differences are of `measure`, the first's less the second's. */
export function comparisonJson(
  { names, evaluations, standings }: ComparisonResults,
  context: EvaluationContext,
) {
  const { environment, split, episodes, scenario } = context;
  return {
    environment: environment.id,
    version: environment.version,
    split,
    episodes,
    ...scenario,
    measure: standings.measure,
    policies: names.map((name, i) => ({
      policy: name,
      rank: standings.ranks[i],
      ...gainsJson(evaluations[i].gains),
      score: evaluations[i].overall,
      profile: standings.profiles[i],
    })),
    comparisons: standings.comparisons.map(({ first, second, tasks, overall }) => ({
      first: names[first],
      second: names[second],
      overall: differenceJson(overall),
      tasks: Object.fromEntries(tasks.map(({ taskId, difference }) => [taskId, differenceJson(difference)])),
    })),
  };
}

function differenceJson(difference: PairedDifference) {
  return {
    mean: difference.mean,
    ci95: difference.ci95,
    probability_of_improvement: difference.probability,
    probability_ci95: difference.probabilityCi95,
    verdict: difference.verdict,
  };
}

/** Text of `compare`. */
export function comparisonTable(results: ComparisonResults, context: EvaluationContext): string {
  const { names, evaluations, standings } = results;
  const { measure } = standings;
  const figureOf = ({ gains, overall }: Evaluation) => (measure === 'gain' ? gains!.gain.mean : overall.iqm);
  const order = names
    .map((_, i) => i)
    .sort(
      (a, b) =>
        standings.ranks[a] - standings.ranks[b] || figureOf(evaluations[b]) - figureOf(evaluations[a]),
    );
  const ranked = order.map((i) => {
    const { overall, gains } = evaluations[i];
    const { iqm, ci95 } = overall;
    return [names[i], String(standings.ranks[i]), ...gainCells(gains), iqm.toFixed(3), interval(ci95)];
  });
  const pairs = standings.comparisons.flatMap(({ first, second, tasks, overall }) => [
    ...tasks.map(({ taskId, difference }) =>
      pairRow(`${names[first]} - ${names[second]}`, String(taskId), difference),
    ),
    ...(tasks.length > 1 ? [pairRow(`${names[first]} - ${names[second]}`, 'all', overall)] : []),
  ]);
  return [
    `${playedOn(context)}, ${context.episodes} episodes a task, the same for every policy`,
    '',
    ...alignedRows([['policy', 'rank', ...GAIN_HEADER, 'score', '95 %'], ...ranked]),
    '',
    ...alignedRows([['difference', 'task', 'mean', '95 %', 'P(better)', 'first is'], ...pairs]),
    '',
    GAIN_LEGEND,
    `score: interquartile mean. difference: of the ${measure}s of an episode, its mean and the interval of that.`,
    'P(better): share of the episodes in which the first did better. Policies share a rank unless the interval of',
    'their difference excludes 0.',
  ].join('\n');
}

function pairRow(
  pair: string,
  task: string,
  { mean, ci95, probability, verdict }: PairedDifference,
): string[] {
  return [pair, task, mean.toFixed(3), interval(ci95), probability.toFixed(2), verdict];
}

function interval([low, high]: readonly [number, number]): string {
  return `${low.toFixed(3)} .. ${high.toFixed(3)}`;
}
