import { createPolicy, evaluatePolicy, listPolicies, type ServePolicy } from '@servegym/agents';
import { llmserve, SEED_SPLITS, type SeedSplit, TASK_IDS, type TaskId } from '@servegym/environments';
import { Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { wholeNumber } from '../options.ts';
import { readTrainedPolicy } from '../read-trained-policy.ts';
import { evaluationJson, evaluationTable } from '../reports/evaluation-report.ts';

interface EvaluateOptions {
  readonly agent?: string;
  readonly policyFile?: string;
  readonly task?: TaskId | 'all';
  readonly episodes: number;
  readonly split: SeedSplit;
  readonly json: boolean;
}

/** A policy and the tasks it can play. */
interface Contestant {
  readonly policy: ServePolicy;
  readonly taskIds: readonly TaskId[];
}

/** `servegym evaluate`: plays and grades a policy on traffic that nothing was tuned on. */
export function evaluateCommand(): Command {
  return new Command('evaluate')
    .description('play and grade a policy, with interquartile means and 95 % intervals')
    .addOption(
      new Option('--agent <name>', 'the policy').choices(listPolicies().map((policy) => policy.name)),
    )
    .addOption(
      new Option('--policy-file <file>', 'instead: a policy that `servegym train` made').conflicts('agent'),
    )
    .addOption(
      new Option('--task <id>', 'the task (default: all, or the one that it was trained for)').choices([
        'all',
        ...TASK_IDS,
      ]),
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

async function evaluate(options: EvaluateOptions): Promise<void> {
  const { split, episodes, json } = options;
  const { policy, taskIds } = await chooseContestant(options);
  const showProgress = process.stderr.isTTY;
  const evaluation = await evaluatePolicy(llmserve, policy, {
    taskIds,
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

async function chooseContestant({ agent, policyFile, task }: EvaluateOptions): Promise<Contestant> {
  const asked = task === undefined || task === 'all' ? TASK_IDS : [task];
  if (agent !== undefined) return { policy: createPolicy(agent), taskIds: asked };
  if (policyFile === undefined) {
    throw new InputError('expected a policy to evaluate: give --agent <name> or --policy-file <file>');
  }
  const { policy, taskId } = await readTrainedPolicy(policyFile);
  if (task !== undefined && task !== taskId) {
    throw new InputError(`${policyFile}: expected a policy for ${task}, got one for ${taskId}`);
  }
  return { policy, taskIds: [taskId] };
}
