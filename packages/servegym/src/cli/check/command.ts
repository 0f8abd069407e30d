import {
  AGENTS,
  type CheckEffort,
  type CheckResult,
  QUICK,
  type TaskCheck,
  THOROUGH,
} from '@servegym/agents';
import { fleet, inferencegym, llmserve } from '@servegym/environments';
import { Command, Option } from 'commander';
import { findOrLoadFleetTask, findOrLoadTask } from '../arguments/own-inputs.ts';
import { readOwnTable } from '../arguments/read-table.ts';
import { InputError } from '../input-error.ts';
import { showProgress } from '../output/progress.ts';
import { checkJson, checkTable } from './check-report.ts';

/** Environments and the tasks that are checked where none is named. */
const TASKS = {
  llmserve: llmserve.tasks.shippedIds,
  inferencegym: inferencegym.tasks.shippedIds,
  fleet: fleet.tasks.shippedIds,
};
type CheckableEnvironment = keyof typeof TASKS;
const ALL_TASKS = Object.values(TASKS)
  .map((ids) => ids.join(', '))
  .join(', or of ');

interface CheckOptions {
  readonly env: CheckableEnvironment;
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
      `a task, or with llmserve and fleet a file that holds one (JSON, or a module); default: all of ${ALL_TASKS}`,
    )
    .addOption(new Option('--env <name>', 'the environment').choices(Object.keys(TASKS)).default('llmserve'))
    .option('--task <id|file>', 'the same as the argument')
    .option('--table <file.parquet>', 'with inferencegym: a table of your own measurements')
    .option('--quick', 'play less: a first look, and what the tests do', false)
    .option('--json', 'print one JSON array', false)
    .action(check);
}

async function check(argument: string | undefined, options: CheckOptions): Promise<void> {
  const { env, task, table, quick, json } = options;
  const asked = argument ?? task ?? 'all';
  if (env !== 'inferencegym' && table !== undefined) {
    throw new InputError('--table belongs to inferencegym: add --env inferencegym');
  }
  const names = asked !== 'all' ? [asked] : TASKS[env];
  const checked: TaskCheck[] = [];
  for (const wanted of names) {
    const found = await findTask(env, wanted, table);
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

async function findTask(
  env: CheckableEnvironment,
  wanted: string | number,
  table: string | undefined,
): Promise<Checkable> {
  switch (env) {
    case 'llmserve': {
      const task = await findOrLoadTask(`${wanted}`);
      return { name: task.id, check: (effort, onGroup) => AGENTS.llmserve.check(task, effort, onGroup) };
    }
    case 'fleet': {
      const task = await findOrLoadFleetTask(`${wanted}`);
      return { name: task.id, check: (effort, onGroup) => AGENTS.fleet.check(task, effort, onGroup) };
    }
    case 'inferencegym':
      return gymTask(wanted, table);
  }
}

async function gymTask(id: string | number, table: string | undefined): Promise<Checkable> {
  const task = inferencegym.tasks.shipped[inferencegym.choose({ task_id: id }).id];
  const inputs = { table: table === undefined ? undefined : await readOwnTable(table) };
  return {
    name: `task ${task.id}`,
    check: (effort, onGroup) => AGENTS.inferencegym.check(task, effort, onGroup, inputs),
  };
}
