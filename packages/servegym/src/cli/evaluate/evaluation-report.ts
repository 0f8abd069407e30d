import {
  type Evaluation,
  type GainFigures,
  joinEvaluations,
  type PairedDifference,
  type Standings,
  type TaskEvaluation,
} from '@servegym/agents';
import type { FleetScenario, ServeScenario } from '@servegym/environments';
import { percent } from '@servegym/operators/report';
import { counted } from '@servegym/simulator';
import { type Column, type Form, table } from '../output/print-result.ts';

/** Environment, seeds and scenario of an evaluation. */
export interface EvaluationContext {
  readonly environment: { readonly id: string; readonly version: string };
  readonly split: string;
  /** For each task. */
  readonly episodes: number;
  /** Traffic, trace and shift that the tasks were played under. */
  readonly scenario?: ServeScenario | FleetScenario;
}

function contextJson({ environment: { id, version }, split, episodes, scenario }: EvaluationContext) {
  return { environment: id, version, split, episodes, ...scenario };
}

function playedOn({ environment, split, scenario = {} }: EvaluationContext): string {
  const under = Object.entries(scenario).map(
    ([name, value]) => `, ${name} ${String(value).replace(/@sha256:.*/, '')}`,
  );
  return `${environment.id} ${environment.version}, ${split} split${under.join('')}`;
}

/** Gain figures in the JSON of reports; all `null` where the environment gives no anchors. */
export function gainsJson(gains: GainFigures | null) {
  return {
    gain: gains && { ...gains.gain, estimated: gains.estimated },
    worst10: gains?.worst10 ?? null,
    below_default: gains?.belowDefault ?? null,
  };
}

/** Gain figures in the tables of reports. */
export function gainColumns<Row>(of: (row: Row) => GainFigures | null): readonly Column<Row>[] {
  const column = (heading: string, text: (gains: GainFigures, mark: string) => string): Column<Row> => [
    heading,
    (row) => {
      const gains = of(row);
      return gains === null ? '-' : text(gains, gains.estimated ? '~' : '');
    },
  ];
  return [
    column('gain', ({ gain }, mark) => mark + gain.mean.toFixed(3)),
    column('95 %', ({ gain }) => interval(gain.ci95)),
    column('worst 10 %', ({ worst10 }, mark) => mark + worst10.toFixed(3)),
    column('< default', ({ belowDefault }) => `${(100 * belowDefault).toFixed(0)} %`),
  ];
}

export const GAIN_LEGEND = [
  'gain: of the mean return, nothing floored; 0 is the default configuration, 1 a planner that knows the traffic',
  '(~ where that is estimated). worst 10 %: the gain of the worst tenth of the episodes. < default: episodes below it.',
].join('\n');

const LEGEND = [
  GAIN_LEGEND,
  'score, return and regret (behind a planner that knows the traffic): interquartile means; 95 %: intervals, by the',
  'stratified bootstrap.',
  'SLO met, USD/1k (output tokens) and preempted (requests): means over the episodes.',
].join('\n');

/** An evaluation: figures of each task. Intervals are of the interquartile mean. */
export const evaluationForm = (context: EvaluationContext): Form<Evaluation> => ({
  json: (evaluation) => evaluationJson(evaluation, context),
  text: (evaluation) => `${titledTable(evaluation, context)}\n\n${LEGEND}`,
});

export function evaluationJson({ policy, tasks, overall, gains }: Evaluation, context: EvaluationContext) {
  return {
    agent: policy,
    ...contextJson(context),
    tasks: Object.fromEntries(
      tasks.map((task) => [
        task.taskId,
        {
          ...{ score: task.score, ...gainsJson(task.gains), return: task.return, regret: task.regret },
          ...{ slo_compliance: task.sloCompliance, cost_per_1k_usd: task.costPer1k },
          ...{ preemptions: task.preemptions, windows_per_s: task.windowsPerSecond },
          runs: task.episodes.map(({ seed, score, return: total, regret, anchors }) => ({
            ...{ seed, score, return: total, regret, anchors },
          })),
        },
      ]),
    ),
    overall: { score: overall, ...gainsJson(gains) },
  };
}

function titledTable({ policy, tasks, overall, gains }: Evaluation, context: EvaluationContext): string {
  const columns: readonly Column<TaskEvaluation>[] = [
    ['task', ({ taskId }) => String(taskId)],
    ...gainColumns<TaskEvaluation>((task) => task.gains),
    ['score', ({ score }) => score.iqm.toFixed(3)],
    ['95 %', ({ score }) => interval(score.ci95)],
    ['mean', ({ score }) => score.mean.toFixed(3)],
    // Of all tasks together they say nothing.
    ['return', (task) => task.return.iqm.toFixed(2)],
    ['regret', ({ regret }) => regret?.iqm.toFixed(2) ?? '-'],
    ['SLO met', ({ sloCompliance }) => percent(sloCompliance)],
    ['USD/1k', ({ costPer1k }) => costPer1k.toFixed(5)],
    ['preempted', ({ preemptions }) => preemptions.toFixed(1)],
    ['windows/s', ({ windowsPerSecond }) => Math.round(windowsPerSecond).toString()],
  ];
  const all = { ...tasks[0], taskId: 'all', gains, score: overall };
  const ofAll = columns.slice(0, -6).map(([, cell]) => cell(all, tasks.length));
  const title = `${policy} on ${playedOn(context)}, ${counted(context.episodes, 'episode')} a task`;
  return [title, '', ...table(tasks, columns, tasks.length > 1 ? [ofAll] : [])].join('\n');
}

export function scenariosForm(
  context: EvaluationContext,
  scenarios: Readonly<Record<string, object>>,
): Form<ReadonlyMap<string, Evaluation>> {
  const under = (name: string): EvaluationContext => ({
    ...context,
    scenario: { ...context.scenario, ...scenarios[name] } as ServeScenario,
  });
  return {
    json: (shifted) => ({
      agent: shifted.values().next().value?.policy,
      ...contextJson(context),
      [context.split === 'shifted' ? 'shifts' : 'scenarios']: Object.fromEntries(
        [...shifted].map(([shift, evaluation]) => [shift, evaluationJson(evaluation, under(shift))]),
      ),
    }),
    text(shifted) {
      const tables = [...shifted].map(([shift, evaluation]) => titledTable(evaluation, under(shift)));
      const { mean } = joinEvaluations(shifted).overall;
      return [...tables, `mean score of all: ${mean.toFixed(3)}`, LEGEND].join('\n\n');
    },
  };
}

interface ComparisonResults {
  readonly names: readonly string[];
  readonly evaluations: readonly Evaluation[];
  readonly standings: Standings;
}

/** Policies compared. Differences are of `measure`, the first's less the second's. */
export const comparisonForm = (context: EvaluationContext): Form<ComparisonResults> => ({
  json: ({ names, evaluations, standings: { measure, ranks, profiles, comparisons } }) => ({
    ...{ ...contextJson(context), measure },
    policies: names.map((policy, i) => ({
      ...{ policy, rank: ranks[i], ...gainsJson(evaluations[i].gains) },
      ...{ score: evaluations[i].overall, profile: profiles[i] },
    })),
    comparisons: comparisons.map(({ first, second, tasks, overall }) => ({
      ...{ first: names[first], second: names[second], overall: differenceJson(overall) },
      tasks: Object.fromEntries(tasks.map(({ taskId, difference }) => [taskId, differenceJson(difference)])),
    })),
  }),
  text: (results) => comparisonText(results, context),
});

function differenceJson({ mean, ci95, probability, probabilityCi95, verdict }: PairedDifference) {
  return { mean, ci95, probability_of_improvement: probability, probability_ci95: probabilityCi95, verdict };
}

function comparisonText({ names, evaluations, standings }: ComparisonResults, context: EvaluationContext) {
  const { measure, ranks } = standings;
  const figureOf = ({ gains, overall }: Evaluation) => (measure === 'gain' ? gains!.gain.mean : overall.iqm);
  const ranked = names
    .map((name, i) => ({ ...evaluations[i], name, rank: ranks[i] }))
    .sort((a, b) => a.rank - b.rank || figureOf(b) - figureOf(a));
  const pairs = standings.comparisons.flatMap(({ first, second, tasks, overall }) => {
    const pair = `${names[first]} - ${names[second]}`;
    const rows = tasks.map(({ taskId, difference }) => ({ ...difference, pair, task: String(taskId) }));
    return tasks.length > 1 ? [...rows, { ...overall, pair, task: 'all' }] : rows;
  });
  return [
    `${playedOn(context)}, ${counted(context.episodes, 'episode')} a task, the same for every policy`,
    '',
    ...table(ranked, [
      ['policy', ({ name }) => name],
      ['rank', ({ rank }) => String(rank)],
      ...gainColumns<Evaluation>(({ gains }) => gains),
      ['score', ({ overall }) => overall.iqm.toFixed(3)],
      ['95 %', ({ overall }) => interval(overall.ci95)],
    ]),
    '',
    ...table(pairs, [
      ['difference', ({ pair }) => pair],
      ['task', ({ task }) => task],
      ['mean', ({ mean }) => mean.toFixed(3)],
      ['95 %', ({ ci95 }) => interval(ci95)],
      ['P(better)', ({ probability }) => probability.toFixed(2)],
      ['first is', ({ verdict }) => verdict],
    ]),
    '',
    GAIN_LEGEND,
    `score: interquartile mean. difference: of the ${measure}s of an episode, its mean and the interval of that.`,
    'P(better): share of the episodes in which the first did better. Policies share a rank unless the interval of',
    'their difference excludes 0.',
  ].join('\n');
}

function interval([low, high]: readonly [number, number]): string {
  return `${low.toFixed(3)} .. ${high.toFixed(3)}`;
}
