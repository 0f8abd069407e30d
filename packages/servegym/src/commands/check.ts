import { checkTask, QUICK, type TaskCheck, THOROUGH } from '@servegym/agents';
import { TASK_IDS } from '@servegym/environments';
import { Command, Option } from 'commander';
import { checkJson, checkTable } from '../reports/check-report.ts';
import { findOrLoadTask } from '../task-files/load-task.ts';

interface CheckOptions {
  readonly env: string;
  readonly task?: string;
  readonly quick: boolean;
  readonly json: boolean;
}

/** `servegym check`: whether a task is sound, and a game worth learning. */
export function checkCommand(): Command {
  return new Command('check')
    .description(
      'Check whether a task is a sound simulation and a game worth learning. Ends with 1 when it is not.',
    )
    .argument(
      '[task]',
      `a task, or a file that holds one (JSON, or a module); default: all of ${TASK_IDS.join(', ')}`,
    )
    .addOption(new Option('--env <name>', 'the environment').choices(['llmserve']).default('llmserve'))
    .option('--task <id|file>', 'the same as the argument')
    .option('--quick', 'play less: a first look, and what the tests do', false)
    .option('--json', 'print one JSON array', false)
    .action(check);
}

async function check(argument: string | undefined, { task, quick, json }: CheckOptions): Promise<void> {
  const asked = argument ?? task;
  const names = asked === undefined || asked === 'all' ? TASK_IDS : [asked];
  const checked: TaskCheck[] = [];
  for (const name of names) {
    const found = await findOrLoadTask(name);
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${found.id} ...`);
    const outcome = await checkTask(found, quick ? QUICK : THOROUGH, (results) => {
      if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${found.id}: ${results[0]?.group}`);
    });
    if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
    checked.push(outcome);
    if (!json) console.log(checkTable(outcome));
  }
  if (json) console.log(JSON.stringify(checked.map(checkJson), null, 2));
  if (checked.some(({ passed }) => !passed)) process.exitCode = 1;
}
