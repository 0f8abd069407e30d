import { EVALUATION_SPLITS, type EvaluationSplit, SHIFTED } from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { type Command, Option } from 'commander';
import { type FoundPolicy, findPolicy, tasksFor } from '../arguments/find-policy.ts';
import { wholeNumber } from '../arguments/options.ts';
import { loadTask } from '../arguments/own-inputs.ts';
import {
  addScenarioOptions,
  readScenario,
  type ScenarioArguments,
  taskFileOption,
} from '../arguments/scenario-options.ts';
import { InputError } from '../input-error.ts';
import { addJobOptions, type JobOptions } from '../jobs/open-jobs.ts';

/** Options of an evaluation: what the policies play, and where it runs. */
export interface EvaluationArguments extends ScenarioArguments, JobOptions {
  readonly env: 'llmserve' | 'fleet' | 'inferencegym';
  readonly table?: string;
  readonly task: string;
  readonly taskFile?: string;
  readonly episodes: number;
  readonly split: EvaluationSplit;
}

const MOST_EPISODES = 10_000;

/** Options that mean nothing to an environment. */
const MISPLACED = {
  llmserve: ['table'],
  fleet: ['table', 'traffic', 'queue'],
  inferencegym: ['taskFile', 'traffic', 'trace', 'rateScale', 'profile', 'shift', 'queue'],
} as const satisfies Record<string, readonly (keyof EvaluationArguments)[]>;

/** Adds them to a command, the traffic and where it is played among them. */
export function addEvaluationOptions(command: Command, leastEpisodes: number): Command {
  const evaluated = command
    .addOption(
      new Option('--env <id>', 'the environment').choices(Object.keys(MISPLACED)).default('llmserve'),
    )
    .addOption(new Option('--table <file.parquet>', 'inferencegym: a table of your own'))
    .option('--task <id>', 'the task, or all that every policy can play', 'all')
    .addOption(taskFileOption())
    .addOption(
      new Option('--episodes <n>', 'episodes for each task, each with a seed of its own')
        .default(20)
        .argParser(wholeNumber(leastEpisodes, MOST_EPISODES)),
    )
    .addOption(
      new Option('--split <name>', 'where the seeds come from; shifted: those of test, under each shift')
        .choices(EVALUATION_SPLITS)
        .default('test'),
    );
  return addJobOptions(addScenarioOptions(evaluated));
}

/** Options that would change nothing are mistakes. @throws InputError */
export function refuseMisplacedOptions(options: EvaluationArguments): void {
  const { env, split, shift } = options;
  const misplaced = MISPLACED[env].find((name) => options[name] !== undefined);
  if (misplaced) {
    const flag = misplaced.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new InputError(`--${flag} means nothing to ${env}: leave it out, or choose another --env`);
  }
  if (split === SHIFTED && shift !== undefined) {
    throw new InputError(
      `--split ${SHIFTED} plays every shift: leave out --shift ${shift}, or choose another --split`,
    );
  }
}

/**
 * The policies that were named, the tasks of `llmserve` that all of them are to play, and under which traffic.
 * @throws InputError, TraceError, EnvironmentError
 */
export async function readServeEvaluation(names: readonly string[], options: EvaluationArguments) {
  const { taskFile, split, episodes } = options;
  // First of all: policies may be for this task.
  const own = taskFile === undefined ? undefined : (await loadTask(taskFile)).id;
  const scenario = await readScenario(options, own);
  const found: readonly FoundPolicy[] = await Promise.all(names.map(findPolicy));
  const taskIds = tasksFor(own ?? options.task, found);
  return { found, taskIds, context: { environment: llmserve, split, episodes, scenario } };
}
