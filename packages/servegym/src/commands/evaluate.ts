import { listGymPolicies, listPolicies, type PolicyDescription } from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { Command, Option } from 'commander';
import { evaluateGym } from '../evaluation/evaluate-gym.ts';
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
import { evaluationJson, evaluationTable, shiftedJson, shiftedTable } from '../reports/evaluation-report.ts';
import { loadTask } from '../task-files/load-task.ts';
import { addScenarioOptions, readScenario, type ScenarioArguments } from '../traffic/scenario-options.ts';

interface EvaluateOptions extends ScenarioArguments, JobOptions {
  readonly env: 'llmserve' | 'inferencegym';
  readonly table?: string;
  readonly agent: string;
  readonly task: string;
  readonly taskFile?: string;
  readonly episodes: number;
  readonly split: EvaluationSplit;
  readonly json: boolean;
}

/** `servegym evaluate`: plays and grades a policy on traffic that nothing was tuned on. */
export function evaluateCommand(): Command {
  const command = new Command('evaluate')
    .description('play and grade a policy, with interquartile means and 95 % intervals')
    .requiredOption(
      '--agent <name|file>',
      `${names(listPolicies())} (llmserve), ${names(listGymPolicies())} (inferencegym), or a file that \`servegym train\` wrote`,
    )
    .addOption(
      new Option('--env <id>', 'the environment').choices(['llmserve', 'inferencegym']).default('llmserve'),
    )
    .addOption(new Option('--table <file.parquet>', 'inferencegym: a table of your own'))
    .option('--task <id>', 'the task, or all that the policy can play', 'all')
    .option('--task-file <file>', 'a task of your own, JSON or a module, in the place of --task')
    .addOption(
      new Option('--episodes <n>', 'episodes for each task, each with a seed of its own')
        .default(20)
        .argParser(wholeNumber(1, 10_000)),
    )
    .addOption(
      new Option('--split <name>', 'where the seeds come from; shifted: those of test, under each shift')
        .choices(EVALUATION_SPLITS)
        .default('test'),
    );
  return addJobOptions(addScenarioOptions(command))
    .option('--json', 'print one JSON object', false)
    .addHelpText('after', '\nEvery policy plays the same seeds, so that results can be compared in pairs.')
    .action(evaluate);
}

async function evaluate(options: EvaluateOptions): Promise<void> {
  refuseOtherEnvironments(options);
  if (options.env === 'inferencegym') return evaluateGym(options);
  const { agent, task, taskFile, split, json } = options;
  const scenario = await readScenario(options);
  const found = await findPolicy(agent);
  const taskIds = taskFile === undefined ? tasksFor(task, [found]) : [(await loadTask(taskFile)).id];
  const { policy } = found;
  const context = { environment: llmserve, split, episodes: options.episodes, scenario };
  const plan = { ...context, agent, policyName: policy.name, taskIds, onProgress: showShare };
  const jobs = await openStoppableJobs(options);
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
    await jobs.close();
  }
}

/** Options that would change nothing are mistakes. */
function refuseOtherEnvironments(options: EvaluateOptions): void {
  const ofServe = ['taskFile', 'traffic', 'trace', 'rateScale', 'shift', 'queue'] as const;
  const misplaced =
    options.env === 'llmserve'
      ? options.table !== undefined && 'table'
      : ofServe.find((name) => options[name] !== undefined);
  if (!misplaced) return;
  const flag = misplaced.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new InputError(`--${flag} means nothing to ${options.env}: leave it out, or choose another --env`);
}

function names(policies: readonly PolicyDescription[]): string {
  return policies.map(({ name }) => name).join(', ');
}
