import type { Evaluation, GainFigures } from '@servegym/agents';
import type { TaskId } from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import { table } from '../harness.ts';

/** Result of an agent on a task. */
export interface AgentCell {
  readonly agent: string;
  readonly taskId: TaskId;
  /** `test`, or the name of a shift of it. */
  readonly split: string;
  readonly score: Evaluation['overall'];
  /** Of the returns of all runs. */
  readonly gains: GainFigures | null;
  readonly episodes: number;
  /** Mean score of each training run; of the one policy where nothing is trained. */
  readonly runs: readonly number[];
  /** Of the first traces, by the first run: what a later check compares with. */
  readonly firstScores: readonly number[];
}

/** All that was measured. */
export interface AgentBenchmark {
  readonly environment: string;
  readonly version: string;
  /** What differs on the present version, where it is another. */
  readonly note?: string;
  /** The options of `benchmarks/cases/agents.ts` that decide it. */
  readonly plan: {
    readonly agents: string;
    readonly task: string;
    readonly episodes: number;
    readonly 'shifted-episodes': number;
    readonly 'planning-episodes': number;
    readonly 'planning-shifted-episodes': number;
    readonly 'training-seeds': number;
    readonly steps: number;
    readonly teacher: string;
    readonly lessons: number;
    readonly 'fine-tuning-steps': number;
  };
  readonly cells: readonly AgentCell[];
}

/** Agents that try futures on a simulator before they act. */
export const PLANNERS: ReadonlySet<string> = new Set(['mpc', 'mpc-unshifted', 'mpc-online', 'oracle']);

/** The page of the benchmark in Markdown: all that it says is in `benchmark`. */
export function agentsPage({ environment, version, note, plan, cells }: AgentBenchmark): string {
  const splits = [...new Set(cells.map((cell) => cell.split))];
  const count = (value: number) => value.toLocaleString('en-US');
  const options = Object.entries(plan).map(([name, value]) => `--${name} ${value}`);
  const isLearned = cells.some((cell) => cell.runs.length > 1);
  return `${[
    '# Benchmarks of the agents',
    [
      `Scores on ${environment} ${version}: 0.20 is the task's default configuration, 0.50 the best that never changes (where`,
      'adapting has room), 0.95 a planner that knows the traffic to come. Interquartile means with 95 % intervals (bootstrap',
      'over traces and training runs) on held-out traces that nothing was tuned on; where an agent plays fewer than another, they',
      `are the first of the same ones. Learned agents have ${plan['training-seeds']} training runs of ${count(plan.steps)} windows of the training traffic.`,
      ...(cells.some(({ agent }) => agent === 'distilled')
        ? [
            `\`distilled\` first learns from ${plan.lessons} episodes of \`${plan.teacher}\`, the same ones in all its training runs, and then from`,
            `${count(plan['fine-tuning-steps'])} windows.`,
          ]
        : []),
    ].join('\n'),
    ...(note === undefined ? [] : [note]),
    [
      'Other pages have [other servers and public traces](agents.md#any-server), [other prices](environments.md#prices) and',
      '[what each knob is worth](environments.md#decisions-and-settings).',
    ].join('\n'),
    'Everything here comes from one command, which also writes [benchmarks.json](benchmarks.json):',
    `\`\`\`sh\nnpx node benchmarks/run.ts agents ${options.join(' ')} --out docs/benchmarks.md\n\`\`\``,
    ...splits.flatMap((split) => [
      split === 'test' ? '## Test traces' : `## Shifted: \`${split}\``,
      ...splitTables(cells.filter((cell) => cell.split === split)),
    ]),
    ...(splits.length > 1 ? gapSection(cells, splits) : []),
    ...(isLearned ? runsSection(cells) : []),
  ].join('\n\n')}\n`;
}

/** Scores of the agents on the tasks of a split, and their gains. */
function splitTables(cells: readonly AgentCell[]): string[] {
  const taskIds = [...new Set(cells.map((cell) => cell.taskId))];
  const scores = Object.entries(Object.groupBy(cells, ({ agent }) => agent)).map(([agent, own = []]) => [
    `\`${agent}\``,
    String(own[0]!.episodes),
    ...own.map(({ score: { iqm, ci95 } }) => `${iqm.toFixed(3)} ${interval(ci95)}`),
  ]);
  const gains = cells.flatMap(({ agent, taskId, gains }) => {
    if (!gains) return [];
    const { gain, worst10, belowDefault } = gains;
    const share = `${(100 * belowDefault).toFixed(0)} %`;
    return [
      [`\`${agent}\``, taskId, `${gain.mean.toFixed(3)} ${interval(gain.ci95)}`, worst10.toFixed(3), share],
    ];
  });
  return [
    table(['agent', 'traces', ...taskIds], scores),
    ...(gains.length === 0
      ? []
      : [
          'Gain of the mean return: 0 is the default configuration, 1 the planner that knows the traffic; nothing is floored.',
          table(['agent', 'task', 'gain', 'worst 10 %', 'below the default'], gains),
        ]),
  ];
}

function interval([low, high]: readonly [number, number]): string {
  return `(${low.toFixed(3)} .. ${high.toFixed(3)})`;
}

/** Share of each agent's score that is lost under shifts. */
function gapSection(cells: readonly AgentCell[], [, ...shifts]: readonly string[]): string[] {
  const meanOf = (agent: string, split: string) =>
    mean(cells.filter((cell) => cell.agent === agent && cell.split === split).map(({ score }) => score.mean));
  const agents = new Set(cells.filter(({ split }) => split === shifts[0]).map(({ agent }) => agent));
  return [
    '## What is lost under shifts',
    [
      'Mean score over the tasks on the test traces, and how far it is above or below it under each shift. Learned agents were',
      'trained without shifts. What shifted traffic is worth to a planner that knows it is estimated by the grader.',
    ].join('\n'),
    table(
      ['agent', 'test', ...shifts],
      [...agents].map((agent) => {
        const test = meanOf(agent, 'test');
        const gaps = shifts.map((shift) => (meanOf(agent, shift) - test).toFixed(3));
        return [`\`${agent}\``, test.toFixed(3), ...gaps];
      }),
    ),
  ];
}

/** Spread of the training runs of each agent that learns. */
function runsSection(cells: readonly AgentCell[]): string[] {
  const learned = cells.filter((cell) => cell.split === 'test' && cell.runs.length > 1);
  return [
    '## Training runs',
    'Mean score of each training run on the test traces.',
    table(
      ['agent', 'task', 'runs', 'mean', 'worst', 'best'],
      learned.map(({ agent, taskId, runs }) => [
        ...[`\`${agent}\``, taskId, String(runs.length)],
        ...[mean(runs), Math.min(...runs), Math.max(...runs)].map((figure) => figure.toFixed(3)),
      ]),
    ),
  ];
}
