import {
  compareEvaluations,
  type Evaluation,
  evaluate,
  evaluateShifted,
  joinEvaluations,
  SHIFTED,
} from '@servegym/agents';
import { firstSeeds } from '@servegym/environments';
import { Command } from 'commander';
import { evaluateInProcess } from '../evaluate/evaluate-in-process.ts';
import {
  addEvaluationOptions,
  type EvaluationArguments,
  readServeEvaluation,
  refuseMisplacedOptions,
} from '../evaluate/evaluation-options.ts';
import type { EvaluationContext } from '../evaluate/evaluation-report.ts';
import { InputError } from '../input-error.ts';
import { withJobs } from '../jobs/open-jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showShare } from '../output/progress.ts';
import { comparisonJson, comparisonTable } from './comparison-report.ts';

interface CompareOptions extends EvaluationArguments {
  readonly json: boolean;
}

/** `servegym compare`: plays several policies on the same traffic and says which are better, where that can be said. */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description('play policies on the same traffic and say which are better, where that can be said')
    .argument('<policies...>', 'names, or files that `servegym train` wrote; two or more');
  return addEvaluationOptions(command, 2).option('--json', 'print one JSON object', false).action(compare);
}

async function compare(names: readonly string[], options: CompareOptions): Promise<void> {
  if (names.length < 2) throw new InputError(`expected two policies or more to compare, got ${names.length}`);
  refuseMisplacedOptions(options);
  const { evaluations, context } =
    options.env === 'llmserve'
      ? await evaluateServePolicies(names, options)
      : await evaluateOthers(names, options);
  const results = { names, evaluations, standings: compareEvaluations(evaluations) };
  printResult(
    options.json,
    () => comparisonJson(results, context),
    () => comparisonTable(results, context),
  );
}

async function evaluateOthers(names: readonly string[], options: CompareOptions) {
  const { evaluations, context } = await evaluateInProcess(names, options);
  return { evaluations: evaluations.map((one) => ('policy' in one ? one : joinEvaluations(one))), context };
}

async function evaluateServePolicies(
  names: readonly string[],
  options: CompareOptions,
): Promise<{ readonly evaluations: readonly Evaluation[]; readonly context: EvaluationContext }> {
  const { found, taskIds, context } = await readServeEvaluation(names, options);
  const evaluations: Evaluation[] = [];
  await withJobs(options, async (jobs) => {
    for (const policy of found) {
      const { split, episodes, scenario } = context;
      const plan = {
        ...{ environment: 'llmserve' as const, policy, taskIds, inputs: { scenario }, onProgress: showShare },
        seeds: firstSeeds(split === SHIFTED ? 'test' : split, episodes),
      } as const;
      evaluations.push(
        options.split === SHIFTED
          ? joinEvaluations(await evaluateShifted(plan, jobs))
          : await evaluate(plan, jobs),
      );
    }
  });
  return { evaluations, context };
}
