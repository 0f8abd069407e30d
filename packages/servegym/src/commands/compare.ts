import { compareEvaluations, type Evaluation, joinEvaluations } from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { Command, Option } from 'commander';
import { evaluateGymPolicies } from '../evaluation/evaluate-gym.ts';
import {
  EVALUATION_SPLITS,
  type EvaluationSplit,
  evaluateServe,
  evaluateShifted,
  SHIFTED,
} from '../evaluation/evaluate-serve.ts';
import { findPolicy, tasksFor } from '../find-policy.ts';
import { InputError } from '../input-error.ts';
import { addJobOptions, type JobOptions, openStoppableJobs } from '../jobs/open-jobs.ts';
import { wholeNumber } from '../options.ts';
import { showShare } from '../progress/progress-line.ts';
import { comparisonJson, comparisonTable } from '../reports/comparison-report.ts';
import type { EvaluationContext } from '../reports/evaluation-report.ts';

interface CompareOptions extends JobOptions {
  readonly env: 'llmserve' | 'inferencegym';
  readonly table?: string;
  readonly task: string;
  readonly episodes: number;
  readonly split: EvaluationSplit;
  readonly json: boolean;
}

/** `servegym compare`: plays several policies on the same traffic and says which are better, where that can be said. */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description('play policies on the same traffic and say which are better, where that can be said')
    .argument('<policies...>', 'names, or files that `servegym train` wrote; two or more')
    .addOption(
      new Option('--env <id>', 'the environment').choices(['llmserve', 'inferencegym']).default('llmserve'),
    )
    .addOption(new Option('--table <file.parquet>', 'inferencegym: a table of your own'))
    .option('--task <id>', 'the task, or all that every policy can play', 'all')
    .addOption(
      new Option('--episodes <n>', 'episodes for each task, each with a seed of its own')
        .default(20)
        .argParser(wholeNumber(2, 10_000)),
    )
    .addOption(
      new Option('--split <name>', 'where the seeds come from; shifted: those of test, under each shift')
        .choices(EVALUATION_SPLITS)
        .default('test'),
    );
  return addJobOptions(command).option('--json', 'print one JSON object', false).action(compare);
}

async function compare(names: readonly string[], options: CompareOptions): Promise<void> {
  if (names.length < 2) throw new InputError(`expected two policies or more to compare, got ${names.length}`);
  if (options.env === 'inferencegym' && options.queue !== undefined) {
    throw new InputError('--queue means nothing to inferencegym: leave it out, or choose another --env');
  }
  const { evaluations, context } =
    options.env === 'inferencegym'
      ? await evaluateGymPolicies(names, options)
      : await evaluateServePolicies(names, options);
  const results = { names, evaluations, standings: compareEvaluations(evaluations) };
  console.log(
    options.json
      ? JSON.stringify(comparisonJson(results, context), null, 2)
      : comparisonTable(results, context),
  );
}

async function evaluateServePolicies(
  names: readonly string[],
  options: CompareOptions,
): Promise<{ readonly evaluations: readonly Evaluation[]; readonly context: EvaluationContext }> {
  const { table, task, episodes, split } = options;
  if (table !== undefined)
    throw new InputError('--table means nothing to llmserve: choose --env inferencegym');
  const found = await Promise.all(names.map(findPolicy));
  const taskIds = tasksFor(task, found);
  const evaluations: Evaluation[] = [];
  const jobs = await openStoppableJobs(options);
  try {
    for (const [i, { policy }] of found.entries()) {
      const plan = {
        ...{ agent: names[i]!, policyName: policy.name, taskIds, split, episodes, scenario: {} },
        onProgress: showShare,
      };
      evaluations.push(
        split === SHIFTED
          ? joinEvaluations(await evaluateShifted(jobs, plan))
          : await evaluateServe(jobs, plan),
      );
    }
  } finally {
    await jobs.close();
  }
  return { evaluations, context: { environment: llmserve, split, episodes } };
}
