import {
  REFERENCE_RETURNS_URL,
  recordedReference,
  type SEED_SPLITS,
  SERVE_TASKS,
  TASK_IDS,
  type TaskId,
} from '@servegym/environments';
import { Command, Option } from 'commander';
import { wholeNumber } from '../arguments/options.ts';
import { addJobOptions, type JobOptions, openStoppableJobs } from '../jobs/open-jobs.ts';
import { showProgress } from '../output/progress-line.ts';
import { oracleJson, oracleTable } from './oracle-report.ts';
import { rebuildReferences } from './rebuild-references.ts';

interface OracleOptions extends JobOptions {
  readonly task: TaskId | 'all';
  readonly rebuild: boolean;
  readonly tune: boolean;
  readonly test: number;
  readonly validation: number;
  readonly train: number;
  readonly planned: number;
  readonly json: boolean;
}

const MOST_SEEDS = 10_000;

/** `servegym oracle`: what traffic is worth, to a fixed configuration and to planners. */
export function oracleCommand(): Command {
  const command = new Command('oracle')
    .description(
      'Show what the traffic of the tasks is worth to the default, to the best configuration that never changes, and to planners that know the traffic to come or do not: the returns that scores are held against. With --rebuild, compute what is missing or no longer holds.',
    )
    .addOption(new Option('--task <id>', 'a task').choices([...TASK_IDS, 'all']).default('all'))
    .option('--rebuild', 'compute what is not recorded for this simulator, and record it', false)
    .option('--tune', 'with --rebuild: search the best constant configurations anew first', false)
    .addOption(seedsOption('test', 100))
    .addOption(seedsOption('validation', 20))
    .addOption(seedsOption('train', 20))
    .addOption(
      new Option('--planned <n>', 'with --rebuild: test seeds that the planner without foresight plays too')
        .default(100)
        .argParser(wholeNumber(0, MOST_SEEDS)),
    );
  return addJobOptions(command)
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      '\nWhat is recorded is kept as it comes: a rebuild that was stopped goes on where it was.',
    )
    .action(oracle);
}

function seedsOption(split: keyof typeof SEED_SPLITS, seeds: number): Option {
  return new Option(`--${split} <n>`, `with --rebuild: the first seeds of the ${split} split`)
    .default(seeds)
    .argParser(wholeNumber(0, MOST_SEEDS));
}

async function oracle(options: OracleOptions): Promise<void> {
  const taskIds = options.task === 'all' ? TASK_IDS : [options.task];
  let references = Object.fromEntries(taskIds.map((id) => [id, recordedReference(id)]));
  if (options.rebuild) {
    const jobs = await openStoppableJobs(options);
    try {
      references = await rebuildReferences(jobs, {
        url: REFERENCE_RETURNS_URL,
        tasks: taskIds.map((id) => SERVE_TASKS[id]),
        seeds: { test: options.test, validation: options.validation, train: options.train },
        planned: options.planned,
        tune: options.tune,
        onProgress: showProgress,
      });
    } finally {
      await jobs.close();
      showProgress('');
    }
  }
  console.log(options.json ? JSON.stringify(oracleJson(references), null, 2) : oracleTable(references));
}
