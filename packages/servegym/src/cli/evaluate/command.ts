import {
  type Evaluation,
  evaluate as evaluatePlan,
  evaluateShifted,
  listFleetPolicies,
  listGymPolicies,
  listPolicies,
  type PolicyDescription,
  SHIFTED,
} from '@servegym/agents';
import { firstSeeds } from '@servegym/environments';
import { Command } from 'commander';
import { withJobs } from '../jobs/open-jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showShare } from '../output/progress.ts';
import { evaluateInProcess, type InProcessEvaluation } from './evaluate-in-process.ts';
import {
  addEvaluationOptions,
  type EvaluationArguments,
  readServeEvaluation,
  refuseMisplacedOptions,
} from './evaluation-options.ts';
import {
  type EvaluationContext,
  evaluationJson,
  evaluationTable,
  shiftedJson,
  shiftedTable,
} from './evaluation-report.ts';

interface EvaluateOptions extends EvaluationArguments {
  readonly agent: string;
  readonly json: boolean;
}

/** `servegym evaluate`: plays and grades a policy on traffic that nothing was tuned on. */
export function evaluateCommand(): Command {
  const command = new Command('evaluate')
    .description('play and grade a policy, with interquartile means and 95 % intervals')
    .requiredOption(
      '--agent <name|file>',
      `${names(listPolicies())} (llmserve), ${names(listFleetPolicies())} (fleet), ${names(listGymPolicies())} (inferencegym), or a file that \`servegym train\` wrote`,
    );
  return addEvaluationOptions(command, 1)
    .option('--json', 'print one JSON object', false)
    .addHelpText('after', '\nEvery policy plays the same seeds, so that results can be compared in pairs.')
    .action(evaluate);
}

async function evaluate(options: EvaluateOptions): Promise<void> {
  refuseMisplacedOptions(options);
  const { agent, split, json } = options;
  if (options.env !== 'llmserve') {
    const { evaluations, context } = await evaluateInProcess([agent], options);
    const [played] = evaluations as readonly [InProcessEvaluation];
    return 'policy' in played ? printEvaluation(json, played, context) : printShifted(json, played, context);
  }
  const { found, taskIds, context } = await readServeEvaluation([agent], options);
  const { scenario, episodes } = context;
  const plan = {
    ...{
      environment: 'llmserve' as const,
      policy: found[0],
      taskIds,
      inputs: { scenario },
      onProgress: showShare,
    },
    seeds: firstSeeds(split === SHIFTED ? 'test' : split, episodes),
  } as const;
  showShare(0);
  try {
    await withJobs(options, async (jobs) => {
      if (split === SHIFTED) printShifted(json, await evaluateShifted(plan, jobs), context);
      else printEvaluation(json, await evaluatePlan(plan, jobs), context);
    });
  } finally {
    showShare(1);
  }
}

function printEvaluation(json: boolean, evaluation: Evaluation, context: EvaluationContext): void {
  printResult(
    json,
    () => evaluationJson(evaluation, context),
    () => evaluationTable(evaluation, context),
  );
}

function printShifted(
  json: boolean,
  shifted: ReadonlyMap<string, Evaluation>,
  context: EvaluationContext,
): void {
  printResult(
    json,
    () => shiftedJson(shifted, context),
    () => shiftedTable(shifted, context),
  );
}

function names(policies: readonly PolicyDescription[]): string {
  return policies.map(({ name }) => name).join(', ');
}
