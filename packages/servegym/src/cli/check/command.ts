import {
  type CheckEffort,
  type CheckResult,
  checkGymTask,
  checkTask,
  QUICK,
  type TaskCheck,
  THOROUGH,
} from '@servegym/agents';
import { chooseGymTask, GYM_TASK_IDS, GYM_TASKS, shippedWorld, TASK_IDS } from '@servegym/environments';
import { Command, Option } from 'commander';
import { findOrLoadTask } from '../arguments/own-inputs.ts';
import { readGymOptions } from '../arguments/read-table.ts';
import { InputError } from '../input-error.ts';
import { showProgress } from '../output/progress.ts';
import { checkJson, checkTable } from './check-report.ts';

interface CheckOptions {
  readonly env: 'llmserve' | 'inferencegym';
  readonly task?: string;
  readonly table?: string;
  readonly quick: boolean;
  readonly json: boolean;
}

/** A task that is to be checked. */
interface Checkable {
  readonly name: string;
  readonly check: (
    effort: CheckEffort,
    onGroup: (results: readonly CheckResult[]) => void,
  ) => Promise<TaskCheck>;
}

/** `servegym check`: whether a task is sound, and a game worth learning. */
export function checkCommand(): Command {
  return new Command('check')
    .description(
      'Check whether a task is a sound simulation and a game worth learning. Ends with 1 when it is not.',
    )
    .argument(
      '[task]',
      `a task, or with llmserve a file that holds one (JSON, or a module); default: all of ${TASK_IDS.join(', ')}, or of ${GYM_TASK_IDS.join(', ')}`,
    )
    .addOption(
      new Option('--env <name>', 'the environment').choices(['llmserve', 'inferencegym']).default('llmserve'),
    )
    .option('--task <id|file>', 'the same as the argument')
    .option('--table <file.parquet>', 'with inferencegym: a table of your own measurements')
    .option('--quick', 'play less: a first look, and what the tests do', false)
    .option('--json', 'print one JSON array', false)
    .action(check);
}

async function check(argument: string | undefined, options: CheckOptions): Promise<void> {
  const { env, task, table, quick, json } = options;
  const asked = argument ?? task ?? 'all';
  if (env === 'llmserve' && table !== undefined) {
    throw new InputError('--table belongs to inferencegym: add --env inferencegym');
  }
  const names = asked !== 'all' ? [asked] : env === 'llmserve' ? TASK_IDS : GYM_TASK_IDS;
  const checked: TaskCheck[] = [];
  for (const wanted of names) {
    const found = env === 'llmserve' ? await serveTask(`${wanted}`) : await gymTask(wanted, table);
    showProgress(`${found.name} ...`);
    const outcome = await found.check(quick ? QUICK : THOROUGH, (results) =>
      showProgress(`${found.name}: ${results[0]?.group}`),
    );
    showProgress('');
    checked.push(outcome);
    if (!json) console.log(checkTable(outcome));
  }
  if (json) console.log(JSON.stringify(checked.map(checkJson), null, 2));
  if (checked.some(({ passed }) => !passed)) process.exitCode = 1;
}

async function serveTask(nameOrFile: string): Promise<Checkable> {
  const task = await findOrLoadTask(nameOrFile);
  return { name: task.id, check: (effort, onGroup) => checkTask(task, effort, onGroup) };
}

async function gymTask(id: string | number, table: string | undefined): Promise<Checkable> {
  const task = GYM_TASKS[chooseGymTask({ task_id: id }).id];
  const { world = shippedWorld } = await readGymOptions(table);
  const ground = await world();
  return {
    name: `task ${task.id}`,
    check: (effort, onGroup) => checkGymTask(ground, task, effort, onGroup),
  };
}
