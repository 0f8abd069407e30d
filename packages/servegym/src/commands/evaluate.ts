import { evaluatePolicy, listPolicies } from '@servegym/agents';
import { llmserve, SEED_SPLITS, type SeedSplit, TASK_IDS, type TaskId } from '@servegym/environments';
import { Command, Option } from 'commander';
import { findPolicy, tasksFor } from '../find-policy.ts';
import { wholeNumber } from '../options.ts';
import { evaluationJson, evaluationTable } from '../reports/evaluation-report.ts';

interface EvaluateOptions {
  readonly agent: string;
  readonly task: TaskId | 'all';
  readonly episodes: number;
  readonly split: SeedSplit;
  readonly json: boolean;
}

/** `servegym evaluate`: plays and grades a policy on traffic that nothing was tuned on. */
export function evaluateCommand(): Command {
  return new Command('evaluate')
    .description('play and grade a policy, with interquartile means and 95 % intervals')
    .requiredOption(
      '--agent <name|file>',
      `${listPolicies()
        .map((policy) => policy.name)
        .join(', ')}, or a file that \`servegym train\` wrote`,
    )
    .addOption(
      new Option('--task <id>', 'the task, or all that the policy can play')
        .choices(['all', ...TASK_IDS])
        .default('all'),
    )
    .addOption(
      new Option('--episodes <n>', 'episodes for each task, each with a seed of its own')
        .default(20)
        .argParser(wholeNumber(1, 10_000)),
    )
    .addOption(
      new Option('--split <name>', 'where the seeds come from')
        .choices(Object.keys(SEED_SPLITS))
        .default('test'),
    )
    .option('--json', 'print one JSON object', false)
    .addHelpText('after', '\nEvery policy plays the same seeds, so that results can be compared in pairs.')
    .action(evaluate);
}

async function evaluate({ agent, task, split, episodes, json }: EvaluateOptions): Promise<void> {
  const found = await findPolicy(agent);
  const showProgress = process.stderr.isTTY;
  const evaluation = await evaluatePolicy(llmserve, found.policy, {
    taskIds: tasksFor(task, [found]),
    seeds: Array.from({ length: episodes }, (_, i) => SEED_SPLITS[split].first + i),
    onEpisode: ({ taskId }, finished, planned) => {
      if (showProgress) process.stderr.write(`\r\u001b[K${taskId}: episode ${finished} of ${planned}`);
    },
  });
  if (showProgress) process.stderr.write('\r\u001b[K');
  const context = { environment: llmserve, split, episodes };
  const report = json
    ? JSON.stringify(evaluationJson(evaluation, context), null, 2)
    : evaluationTable(evaluation, context);
  console.log(report);
}
