import {
  evaluateServe,
  evaluateShifted,
  listGymPolicies,
  listPolicies,
  type PolicyDescription,
  SHIFTED,
} from '@servegym/agents';
import { Command } from 'commander';
import { openStoppableJobs } from '../jobs/open-jobs.ts';
import { showShare } from '../output/progress.ts';
import { evaluateGym } from './evaluate-gym.ts';
import {
  addEvaluationOptions,
  type EvaluationArguments,
  readServeEvaluation,
  refuseMisplacedOptions,
} from './evaluation-options.ts';
import { evaluationJson, evaluationTable, shiftedJson, shiftedTable } from './evaluation-report.ts';

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
      `${names(listPolicies())} (llmserve), ${names(listGymPolicies())} (inferencegym), or a file that \`servegym train\` wrote`,
    );
  return addEvaluationOptions(command, 1)
    .option('--json', 'print one JSON object', false)
    .addHelpText('after', '\nEvery policy plays the same seeds, so that results can be compared in pairs.')
    .action(evaluate);
}

async function evaluate(options: EvaluateOptions): Promise<void> {
  refuseMisplacedOptions(options);
  if (options.env === 'inferencegym') return evaluateGym(options);
  const { agent, split, json } = options;
  const { found, taskIds, context } = await readServeEvaluation([agent], options);
  const { policy, source } = found[0];
  const plan = { ...context, agent: source, policyName: policy.name, taskIds, onProgress: showShare };
  const jobs = await openStoppableJobs(options);
  showShare(0);
  try {
    if (split === SHIFTED) {
      const shifted = await evaluateShifted(jobs, plan);
      console.log(
        json ? JSON.stringify(shiftedJson(shifted, context), null, 2) : shiftedTable(shifted, context),
      );
      return;
    }
    const evaluation = await evaluateServe(jobs, plan);
    console.log(
      json
        ? JSON.stringify(evaluationJson(evaluation, context), null, 2)
        : evaluationTable(evaluation, context),
    );
  } finally {
    showShare(1);
    await jobs.close();
  }
}

function names(policies: readonly PolicyDescription[]): string {
  return policies.map(({ name }) => name).join(', ');
}
