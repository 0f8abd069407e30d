import { compareEvaluations, type Evaluation, joinEvaluations } from '@servegym/agents';
import { llmserve, TASK_IDS, type TaskId } from '@servegym/environments';
import { Command, Option } from 'commander';
import {
  EVALUATION_SPLITS,
  type EvaluationSplit,
  evaluateServe,
  evaluateShifted,
  SHIFTED,
} from '../evaluation/evaluate-serve.ts';
import { findPolicy, tasksFor } from '../find-policy.ts';
import { InputError } from '../input-error.ts';
import { wholeNumber } from '../options.ts';
import { comparisonJson, comparisonTable } from '../reports/comparison-report.ts';

interface CompareOptions {
  readonly task: TaskId | 'all';
  readonly episodes: number;
  readonly split: EvaluationSplit;
  readonly json: boolean;
}

/** `servegym compare`: plays several policies on the same traffic and says which are better, where that can be said. */
export function compareCommand(): Command {
  return new Command('compare')
    .description('play policies on the same traffic and say which are better, where that can be said')
    .argument('<policies...>', 'names, or files that `servegym train` wrote; two or more')
    .addOption(
      new Option('--task <id>', 'the task, or all that every policy can play')
        .choices(['all', ...TASK_IDS])
        .default('all'),
    )
    .addOption(
      new Option('--episodes <n>', 'episodes for each task, each with a seed of its own')
        .default(20)
        .argParser(wholeNumber(2, 10_000)),
    )
    .addOption(
      new Option('--split <name>', 'where the seeds come from; shifted: those of test, under each shift')
        .choices(EVALUATION_SPLITS)
        .default('test'),
    )
    .option('--json', 'print one JSON object', false)
    .action(compare);
}

async function compare(
  names: readonly string[],
  { task, episodes, split, json }: CompareOptions,
): Promise<void> {
  if (names.length < 2) throw new InputError(`expected two policies or more to compare, got ${names.length}`);
  const found = await Promise.all(names.map(findPolicy));
  const taskIds = tasksFor(task, found);
  const evaluations: Evaluation[] = [];
  for (const { policy } of found) {
    const plan = { taskIds, split, episodes, scenario: {} };
    evaluations.push(
      split === SHIFTED
        ? joinEvaluations(await evaluateShifted(policy, plan))
        : await evaluateServe(policy, plan),
    );
  }
  const results = { names, evaluations, standings: compareEvaluations(evaluations) };
  const context = { environment: llmserve, split, episodes };
  console.log(
    json ? JSON.stringify(comparisonJson(results, context), null, 2) : comparisonTable(results, context),
  );
}
