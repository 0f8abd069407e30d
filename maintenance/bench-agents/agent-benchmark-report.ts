import { mean } from '@servegym/simulator/statistics';
import type { AgentBenchmark, BenchmarkCell } from './benchmark-agents.ts';
import { type BenchmarkPlan, type BenchmarkSplit, PLANNERS, plannedEpisodes } from './benchmark-plan.ts';

/** The page of the benchmark in Markdown: all that it says is in `benchmark`. */
export function agentBenchmarkPage(benchmark: AgentBenchmark): string {
  const { plan, cells, environment, version } = benchmark;
  const splits = [...new Set(cells.map((cell) => cell.split))];
  const sections = splits.map((split) =>
    [
      split === 'test' ? '## Test traces' : `## Shifted: \`${split}\``,
      '',
      ...scoreTable(
        benchmark,
        split,
        cells.filter((cell) => cell.split === split),
      ),
      ...gainTable(cells.filter((cell) => cell.split === split)),
    ].join('\n'),
  );
  const learned = cells.filter((cell) => cell.split === 'test' && cell.runs.length > 1);
  const steps = plan.steps.toLocaleString('en-US');
  return `${[
    '# Benchmarks of the agents',
    [
      `Scores on ${environment} ${version}: 0.20 is the task's default configuration, 0.50 the best that never changes (where`,
      'adapting has room), 0.95 a planner that knows the traffic to come. Interquartile means with 95 % intervals (bootstrap',
      'over traces and training runs) on held-out traces that nothing was tuned on; where an agent plays fewer than another, they',
      `are the first of the same ones. Learned agents have ${plan.trainingSeeds} training runs of ${steps} windows of the training traffic.`,
      ...(plan.agents.some((agent) => PLANNERS.has(agent))
        ? [
            'What planners earn on the test traces was recorded with the anchors of the scores (`servegym evaluate --check recorded`).',
          ]
        : []),
      ...(plan.agents.includes('distilled')
        ? [
            `\`distilled\` first learns from ${plan.lessons} episodes of \`${plan.teacher}\`, the same ones in all its training runs, and then from`,
            `${plan.fineTuningSteps.toLocaleString('en-US')} windows.`,
          ]
        : []),
    ].join('\n'),
    ...(benchmark.note === undefined ? [] : [benchmark.note]),
    [
      'Other pages have [public traces](agents.md#public-traces), [other prices](environments.md#prices),',
      '[what each knob is worth](environments.md#decisions-and-settings) and [a season](seasons.md#one-from-end-to-end).',
    ].join('\n'),
    'Everything here comes from one command, which also writes [benchmarks.json](benchmarks.json):',
    `\`\`\`sh\nnpx node maintenance/bench-agents.ts ${benchmarkOptions(plan).join(' ')}\n\`\`\``,
    ...sections,
    ...(splits.length > 1 ? [gapSection(benchmark)] : []),
    ...(learned.length > 0 ? [runsSection(learned)] : []),
  ].join('\n\n')}\n`;
}

/** Arguments that measure the same again. */
function benchmarkOptions(plan: BenchmarkPlan): (string | number)[] {
  const [onlyTask] = plan.taskIds;
  const isPlanning = plan.agents.some((agent) => PLANNERS.has(agent));
  const isShifted = plan.shiftedEpisodes > 0;
  return [
    ...['--agents', plan.agents.join()],
    ...(plan.taskIds.length === 1 ? ['--task', onlyTask!] : []),
    ...['--episodes', plan.episodes, '--training-seeds', plan.trainingSeeds, '--steps', plan.steps],
    ...(plan.agents.includes('distilled')
      ? ['--teacher', plan.teacher, '--lessons', plan.lessons, '--fine-tuning-steps', plan.fineTuningSteps]
      : []),
    ...(isShifted ? ['--shifted-episodes', plan.shiftedEpisodes] : ['--no-shifted']),
    ...(isPlanning ? ['--planning-episodes', plan.planningEpisodes] : []),
    ...(isPlanning && isShifted ? ['--planning-shifted-episodes', plan.planningShiftedEpisodes] : []),
    ...['--out', 'docs/benchmarks.md'],
  ];
}

function scoreTable(
  { plan }: AgentBenchmark,
  split: BenchmarkSplit,
  cells: readonly BenchmarkCell[],
): string[] {
  return [
    `| agent | traces | ${plan.taskIds.join(' | ')} |`,
    `|---|---|${'---|'.repeat(plan.taskIds.length)}`,
    ...playing(plan, split).map((agent) => {
      const scores = plan.taskIds.map((taskId) => {
        const cell = cells.find((each) => each.agent === agent && each.taskId === taskId);
        if (cell === undefined) return '';
        const { iqm, ci95 } = cell.score;
        return `${iqm.toFixed(3)} (${ci95[0].toFixed(3)} .. ${ci95[1].toFixed(3)})`;
      });
      return `| \`${agent}\` | ${plannedEpisodes(plan, agent, split)} | ${scores.join(' | ')} |`;
    }),
  ];
}

/** Gains of the agents on each task of a split. */
function gainTable(cells: readonly BenchmarkCell[]): string[] {
  const rows = cells.flatMap(({ agent, taskId, gains }) => {
    if (!gains) return [];
    const { gain, worst10, belowDefault } = gains;
    const ci95 = gain.ci95.map((end) => end.toFixed(3)).join(' .. ');
    return [
      `| \`${agent}\` | ${taskId} | ${gain.mean.toFixed(3)} (${ci95}) | ${worst10.toFixed(3)} | ${(100 * belowDefault).toFixed(0)} % |`,
    ];
  });
  if (rows.length === 0) return [];
  return [
    '',
    'Gain of the mean return: 0 is the default configuration, 1 the planner that knows the traffic; nothing is floored.',
    '',
    '| agent | task | gain | worst 10 % | below the default |',
    '|---|---|---|---|---|',
    ...rows,
  ];
}

/** The agents that play a split. */
function playing(plan: BenchmarkPlan, split: BenchmarkSplit): readonly string[] {
  return plan.agents.filter((agent) => plannedEpisodes(plan, agent, split) > 0);
}

/** Share of each agent's score that is lost under shifts. */
function gapSection({ plan, cells }: AgentBenchmark): string {
  const shifts = [...new Set(cells.map((cell) => cell.split))].filter((split) => split !== 'test');
  const rows = playing(plan, shifts[0]).map((agent) => {
    const meanOf = (split: string) => {
      const of = cells.filter((cell) => cell.agent === agent && cell.split === split);
      return mean(of.map((cell) => cell.score.mean));
    };
    const gaps = shifts.map((shift) => (meanOf(shift) - meanOf('test')).toFixed(3));
    return `| \`${agent}\` | ${meanOf('test').toFixed(3)} | ${gaps.join(' | ')} |`;
  });
  return [
    '## What is lost under shifts',
    '',
    'Mean score over the tasks on the test traces, and how far it is above or below it under each shift. Learned agents were',
    'trained without shifts. What shifted traffic is worth to a planner that knows it is estimated by the grader.',
    '',
    `| agent | test | ${shifts.join(' | ')} |`,
    `|---|---|${'---|'.repeat(shifts.length)}`,
    ...rows,
  ].join('\n');
}

/** Spread of the training runs of an agent. */
function runsSection(cells: readonly BenchmarkCell[]): string {
  return [
    '## Training runs',
    '',
    'Mean score of each training run on the test traces.',
    '',
    '| agent | task | runs | mean | worst | best |',
    '|---|---|---|---|---|---|',
    ...cells.map(({ agent, taskId, runs }) => {
      const figures = [mean(runs), Math.min(...runs), Math.max(...runs)].map((figure) => figure.toFixed(3));
      return `| \`${agent}\` | ${taskId} | ${runs.length} | ${figures.join(' | ')} |`;
    }),
  ].join('\n');
}
