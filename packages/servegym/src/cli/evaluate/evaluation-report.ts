import type { Evaluation, GainFigures } from '@servegym/agents';
import type { FleetScenario, ServeScenario } from '@servegym/environments';
import { alignedRows } from '@servegym/operators/report';

/** Environment, seeds and scenario of an evaluation. */
export interface EvaluationContext {
  readonly environment: { readonly id: string; readonly version: string };
  readonly split: string;
  /** For each task. */
  readonly episodes: number;
  /** Traffic, trace and shift that the tasks were played under. */
  readonly scenario?: ServeScenario | FleetScenario;
}

/** The object that `evaluate --json` prints. Intervals are of the interquartile mean. */
export function evaluationJson({ policy, tasks, overall, gains }: Evaluation, context: EvaluationContext) {
  return {
    agent: policy,
    environment: context.environment.id,
    version: context.environment.version,
    split: context.split,
    episodes: context.episodes,
    ...context.scenario,
    tasks: Object.fromEntries(
      tasks.map((task) => [
        task.taskId,
        {
          score: task.score,
          ...gainsJson(task.gains),
          return: task.return,
          regret: task.regret,
          slo_compliance: task.sloCompliance,
          cost_per_1k_usd: task.costPer1k,
          preemptions: task.preemptions,
          windows_per_s: task.windowsPerSecond,
          runs: task.episodes.map((episode) => ({
            seed: episode.seed,
            score: episode.score,
            return: episode.return,
            regret: episode.regret,
            anchors: episode.anchors,
          })),
        },
      ]),
    ),
    overall: { score: overall, ...gainsJson(gains) },
  };
}

/** Gain figures in the JSON of reports; all `null` where the environment gives no anchors. */
export function gainsJson(gains: GainFigures | null) {
  return {
    gain: gains && { ...gains.gain, estimated: gains.estimated },
    worst10: gains?.worst10 ?? null,
    below_default: gains?.belowDefault ?? null,
  };
}

export const GAIN_HEADER = ['gain', '95 %', 'worst 10 %', '< default'] as const;

/** Gain figures in the tables of reports, below `GAIN_HEADER`. */
export function gainCells(gains: GainFigures | null): string[] {
  if (gains === null) return GAIN_HEADER.map(() => '-');
  const mark = gains.estimated ? '~' : '';
  return [
    mark + gains.gain.mean.toFixed(3),
    interval(gains.gain, 3),
    mark + gains.worst10.toFixed(3),
    `${(100 * gains.belowDefault).toFixed(0)} %`,
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

/** Text of `evaluate`. */
export function evaluationTable(evaluation: Evaluation, context: EvaluationContext): string {
  return `${titledTable(evaluation, context)}\n\n${LEGEND}`;
}

function titledTable({ policy, tasks, overall, gains }: Evaluation, context: EvaluationContext): string {
  const { episodes } = context;
  const rows = tasks.map((task) => [
    String(task.taskId),
    ...gainCells(task.gains),
    task.score.iqm.toFixed(3),
    interval(task.score, 3),
    task.score.mean.toFixed(3),
    task.return.iqm.toFixed(2),
    task.regret?.iqm.toFixed(2) ?? '-',
    `${(100 * task.sloCompliance).toFixed(1)} %`,
    task.costPer1k.toFixed(5),
    task.preemptions.toFixed(1),
    Math.round(task.windowsPerSecond).toString(),
  ]);
  if (tasks.length > 1) {
    rows.push([
      ...['all', ...gainCells(gains), overall.iqm.toFixed(3), interval(overall, 3), overall.mean.toFixed(3)],
      ...Array.from({ length: 6 }, () => ''),
    ]);
  }
  const header = [
    'task',
    ...GAIN_HEADER,
    'score',
    '95 %',
    'mean',
    'return',
    'regret',
    'SLO met',
    'USD/1k',
    'preempted',
    'windows/s',
  ];
  const title = `${policy} on ${playedOn(context)}, ${episodes} ${episodes === 1 ? 'episode' : 'episodes'} a task`;
  return [title, '', ...alignedRows([header, ...rows])].join('\n');
}

/** The environment, the split and the scenario, for a title. */
export function playedOn({ environment, split, scenario = {} }: EvaluationContext): string {
  const under = Object.entries(scenario).map(
    ([name, value]) => `, ${name} ${String(value).replace(/@sha256:.*/, '')}`,
  );
  return `${environment.id} ${environment.version}, ${split} split${under.join('')}`;
}

/** The object that `evaluate --split shifted --json` prints: an evaluation for each shift. */
export function shiftedJson(shifted: ReadonlyMap<string, Evaluation>, context: EvaluationContext) {
  const shifts = [...shifted].map(([shift, evaluation]) => [
    shift,
    evaluationJson(evaluation, { ...context, scenario: { ...context.scenario, shift } as ServeScenario }),
  ]);
  const [first] = shifted.values();
  return {
    agent: first?.policy,
    environment: context.environment.id,
    version: context.environment.version,
    split: context.split,
    episodes: context.episodes,
    ...context.scenario,
    shifts: Object.fromEntries(shifts),
  };
}

/** Text of `evaluate --split shifted`: a table for each shift. */
export function shiftedTable(shifted: ReadonlyMap<string, Evaluation>, context: EvaluationContext): string {
  const tables = [...shifted].map(([shift, evaluation]) =>
    titledTable(evaluation, {
      ...context,
      scenario: { ...context.scenario, shift } as ServeScenario,
    }),
  );
  return [...tables, LEGEND].join('\n\n');
}

function interval({ ci95: [low, high] }: Pick<Evaluation['overall'], 'ci95'>, digits: number): string {
  return `${low.toFixed(digits)} .. ${high.toFixed(digits)}`;
}
