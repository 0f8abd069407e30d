import {
  type Evaluation,
  evaluatePolicy,
  listPolicies,
  policyUnderScenario,
  underScenario,
} from '@servegym/agents';
import {
  llmserve,
  SEED_SPLITS,
  type SeedSplit,
  type ServeScenario,
  SHIFTS,
  TASK_IDS,
  type TaskId,
} from '@servegym/environments';
import { Command, Option } from 'commander';
import { type FoundPolicy, findPolicy, tasksFor } from '../find-policy.ts';
import { wholeNumber } from '../options.ts';
import { evaluationJson, evaluationTable, shiftedJson, shiftedTable } from '../reports/evaluation-report.ts';
import { loadTask } from '../task-files/load-task.ts';
import { addScenarioOptions, readScenario, type ScenarioArguments } from '../traffic/scenario-options.ts';

interface EvaluateOptions extends ScenarioArguments {
  readonly agent: string;
  readonly task: string;
  readonly taskFile?: string;
  readonly episodes: number;
  readonly split: SeedSplit | typeof SHIFTED;
  readonly json: boolean;
}

/** In the place of a split: the test seeds under each shift. */
const SHIFTED = 'shifted';

/** `servegym evaluate`: plays and grades a policy on traffic that nothing was tuned on. */
export function evaluateCommand(): Command {
  const command = new Command('evaluate')
    .description('play and grade a policy, with interquartile means and 95 % intervals')
    .requiredOption(
      '--agent <name|file>',
      'random, default, heuristic (llmserve) or baseline (inferencegym), or a file that `servegym train` wrote',
    )
    .addOption(new Option('--env <id>', 'the environment').choices(ARENA_IDS).default('llmserve'))
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
        .choices([...Object.keys(SEED_SPLITS), SHIFTED])
        .default('test'),
    );
  return addScenarioOptions(command)
    .option('--json', 'print one JSON object', false)
    .addHelpText('after', '\nEvery policy plays the same seeds, so that results can be compared in pairs.')
    .action(evaluate);
}

async function evaluate({
  env,
  table,
  agent,
  task,
  split,
  episodes,
  json,
}: EvaluateOptions): Promise<void> {
  const arena = await openArena(env, table);
  const found = await arena.find(agent);
  const showProgress = process.stderr.isTTY;
  const evaluation = await arena.evaluate(found, {
    taskIds: arena.tasksFor(task, [found]),
    seeds: Array.from({ length: episodes }, (_, i) => SEED_SPLITS[split].first + i),
    onEpisode: ({ taskId }, finished, planned) => {
      if (showProgress) process.stderr.write(`\r\u001b[K${taskId}: episode ${finished} of ${planned}`);
    },
  });
  if (showProgress) process.stderr.write('\r\u001b[K');
  const context = { environment: arena.environment, split, episodes };
  const report = json
    ? JSON.stringify(evaluationJson(evaluation, context), null, 2)
    : evaluationTable(evaluation, context);
  console.log(report);
}
