import { recordedReference, TASK_IDS, type TaskId } from '@servegym/environments';
import { Command, Option } from 'commander';
import { oracleJson, oracleTable } from './oracle-report.ts';

interface OracleOptions {
  readonly task: TaskId | 'all';
  readonly json: boolean;
}

/** `servegym oracle`: what traffic is worth, to a fixed configuration and to planners. */
export function oracleCommand(): Command {
  return new Command('oracle')
    .description(
      'Show what the traffic of the tasks is worth to the default, to the best configuration that never changes, and to planners that know the traffic to come or do not: the returns that scores are held against.',
    )
    .addOption(new Option('--task <id>', 'a task').choices([...TASK_IDS, 'all']).default('all'))
    .option('--json', 'print one JSON object', false)
    .action(oracle);
}

function oracle({ task, json }: OracleOptions): void {
  const taskIds = task === 'all' ? TASK_IDS : [task];
  const references = Object.fromEntries(taskIds.map((id) => [id, recordedReference(id)]));
  console.log(json ? JSON.stringify(oracleJson(references), null, 2) : oracleTable(references));
}
