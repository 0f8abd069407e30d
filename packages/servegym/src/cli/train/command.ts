import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import {
  AGENTS,
  type Algorithm,
  decodeStoppedRun,
  isNetworkAlgorithm,
  LEARNABLE_TASKS,
  type LearnableEnvironment,
  learningTaskOf,
  listPolicies,
  type StoppingPoint,
  type TrainingRun,
} from '@servegym/agents';
import type { JobEngine } from '@servegym/jobs';
import { Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../arguments/options.ts';
import { loadTask } from '../arguments/own-inputs.ts';
import { decodeInputFile } from '../arguments/read-input-file.ts';
import { readOwnTable } from '../arguments/read-table.ts';
import {
  addScenarioOptions,
  readScenario,
  type ScenarioArguments,
  taskFileOption,
} from '../arguments/scenario-options.ts';
import { optionOf } from '../command-table.ts';
import { InputError } from '../input-error.ts';
import { InterruptedError, onInterrupt } from '../interrupted-error.ts';
import { queue, withJobs } from '../jobs/open-jobs.ts';
import { printResult } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';
import { trainOne } from './train-one.ts';
import { trainSeeds } from './train-seeds.ts';
import { seedsJson, seedsTable } from './training-report.ts';

interface TrainOptions extends ScenarioArguments {
  readonly env: LearnableEnvironment;
  readonly algo: Algorithm;
  readonly task?: string;
  readonly taskFile?: string;
  readonly steps?: number;
  readonly seed: number;
  readonly seeds?: readonly number[];
  readonly threads: number;
  readonly queue?: string;
  readonly randomise: boolean;
  readonly teacher: string;
  readonly lessons: number;
  readonly table?: string;
  readonly resume?: string;
  readonly out?: string;
  readonly json: boolean;
}

/** Result of each algorithm, for `--help`. */
const ALGORITHMS: Readonly<Record<Algorithm, string>> = {
  ppo: 'a network',
  distill: 'a network that first does what a teacher does',
  cem: 'a configuration for each regime of traffic; on fleet the parameters of an autoscaler',
  static: 'the best configuration that never changes',
};

/** Windows after which PPO gains little more on `llmserve`, and the budget of the others. */
const PPO_STEPS = 480_000;
const OTHER_STEPS = 120_000;

const MOST_THREADS = 32;
const MOST_SEEDS = 1000;

/** The planner, where there is one. */
const DEFAULT_TEACHER = listPolicies().some(({ name }) => name === 'mpc') ? 'mpc' : 'heuristic';

/** `servegym train`: learns a policy on the training split and keeps it in a folder. */
export function trainCommand(): Command {
  const command = new Command('train')
    .description('learn a policy on the training traffic of a task')
    .addOption(new Option('--task <id>', 'the task'))
    .addOption(taskFileOption())
    .addOption(
      new Option('--env <id>', 'the environment').choices(Object.keys(LEARNABLE_TASKS)).default('llmserve'),
    )
    .addOption(new Option('--table <file.parquet>', 'inferencegym: a table of your own'));
  return addScenarioOptions(command)
    .addOption(
      new Option(
        '--algo <name>',
        Object.entries(ALGORITHMS)
          .map(([name, what]) => `${name}: ${what}`)
          .join('; '),
      )
        .choices(Object.keys(ALGORITHMS))
        .default('ppo'),
    )
    .addOption(
      new Option(
        '--steps <n>',
        'windows to learn from (default: 480000 for ppo on llmserve, else 120000; static: as many as it takes)',
      ).argParser(wholeNumber(1, 1e9)),
    )
    .addOption(
      new Option(
        '--randomise',
        'ppo on llmserve: draw another server, rate, prompts and traffic for each episode, to train one policy for many servers',
      ).default(false),
    )
    .addOption(
      new Option('--seed <n>', 'seed of weights, exploration and traffic')
        .default(0)
        .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    )
    .addOption(
      new Option('--seeds <from..to>', 'a training for each of these seeds, side by side')
        .argParser(parseSeeds)
        .conflicts('seed'),
    )
    .addOption(
      new Option('--threads <n>', 'threads that play, or trainings at once; the result does not depend on it')
        .default(Math.min(MOST_THREADS, availableParallelism()))
        .argParser(wholeNumber(1, MOST_THREADS)),
    )
    .addOption(optionOf('queue', queue))
    .addOption(
      new Option('--teacher <name>', 'distill: the policy to learn from')
        .choices(listPolicies().map(({ name }) => name))
        .default(DEFAULT_TEACHER),
    )
    .addOption(
      new Option('--lessons <n>', 'distill: episodes that the teacher plays or comments on')
        .default(48)
        .argParser(wholeNumber(3, 100_000)),
    )
    .addOption(
      new Option(
        '--resume <file>',
        'go on from a checkpoint.safetensors, as if the run had not stopped',
      ).conflicts([
        'task',
        'taskFile',
        'env',
        'table',
        'algo',
        'steps',
        'randomise',
        'seed',
        'seeds',
        'queue',
        'teacher',
        'lessons',
      ]),
    )
    .option('--out <folder>', 'where to write (default: runs/<task>-<algo>-seed<n>, or where the run was)')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
ppo and distill write policy.safetensors, policy.onnx, checkpoint.safetensors, metrics.jsonl, an event file for
TensorBoard and learning-curve.svg, .png and .html; cem writes policy.json, metrics and curve, static policy.json.
Ctrl-C stops early, distill after the round of lessons at hand, keeps what was learned and ends with 130. With --seeds 0..9 each seed gets a folder seed-<n> with the files that
--seed <n> writes; Ctrl-C then keeps the seeds that are done. --queue has the seeds trained, or the lessons and
generations of a single training with distill or cem played, by \`servegym worker\`s.`,
    )
    .action(train);
}

async function train(options: TrainOptions): Promise<void> {
  const { seeds, resume, algo, queue } = options;
  if (resume !== undefined) return goOn(resume, options);
  if (seeds === undefined && queue !== undefined && !['cem', 'distill'].includes(algo)) {
    throw new InputError(
      `expected --seeds beside --queue: a single training with --algo ${algo} has no jobs for others`,
    );
  }
  const run = await readRun(options);
  return seeds === undefined ? trainAlone(run, options) : trainEachSeed(run, seeds, options);
}

/** The run that the options ask for. @throws InputError for options that do not go together */
async function readRun(options: TrainOptions): Promise<TrainingRun> {
  const {
    env: environment,
    algo: algorithm,
    steps = algorithm === 'ppo' && environment === 'llmserve' ? PPO_STEPS : OTHER_STEPS,
    seed,
    teacher,
    lessons: episodes,
    table,
    randomise,
  } = options;
  const task = await readTask(options);
  // A task of another environment is not known to the scenario.
  const scenario = await readScenario(options, environment === 'llmserve' ? task : undefined);
  const hasScenario = Object.keys(scenario).length > 0;
  if (algorithm !== 'ppo' && hasScenario) {
    throw new InputError(`expected --algo ppo, the one that learns on traffic of your own, got ${algorithm}`);
  }
  if (randomise && (algorithm !== 'ppo' || environment !== 'llmserve')) {
    throw new InputError(
      `expected --algo ppo and --env llmserve beside --randomise, got ${algorithm} and ${environment}`,
    );
  }
  const algorithms: readonly Algorithm[] = AGENTS[environment].algorithms;
  if (!algorithms.includes(algorithm)) {
    const known = algorithms.join(', ');
    throw new InputError(`expected --algo ${known}, the one that learns ${environment}, got ${algorithm}`);
  }
  if (hasScenario && environment !== 'llmserve') {
    throw new InputError(`expected --env llmserve beside traffic of your own, got ${environment}`);
  }
  if (table !== undefined && environment !== 'inferencegym') {
    throw new InputError(`expected --env inferencegym beside --table, got ${environment}`);
  }
  const run = {
    ...{ environment, task, algorithm, steps, seed },
    ...(algorithm === 'distill' && { lessons: { teacher, episodes } }),
    ...(hasScenario && { scenario }),
    ...(randomise && { randomise }),
    ...(table !== undefined && { table: await readOwnTable(table) }),
  };
  // Refuses a scenario or a table that the task cannot be learned under, before anything is written.
  if (isNetworkAlgorithm(algorithm)) learningTaskOf(run);
  return run;
}

/** The id of the task that is learned. @throws InputError or EnvironmentError */
async function readTask({ env, task, taskFile }: TrainOptions): Promise<string> {
  if (taskFile !== undefined) {
    if (env === 'llmserve') return (await loadTask(taskFile)).id;
    throw new InputError(`expected --env llmserve beside --task-file, got ${env}`);
  }
  const taskIds: readonly string[] = LEARNABLE_TASKS[env];
  if (task === undefined) {
    const ownTask = env === 'llmserve' ? ', or --task-file' : '';
    throw new InputError(`expected --task, one of ${taskIds.join(', ')}${ownTask}`);
  }
  if (!taskIds.includes(task)) {
    throw new InputError(`expected a task of ${env}, one of ${taskIds.join(', ')}, got ${task}`);
  }
  return task;
}

/** Goes on with a run that stopped, as if it had not. */
async function goOn(file: string, options: TrainOptions): Promise<void> {
  const { run, stoppedAt } = await decodeInputFile(file, (bytes) => decodeStoppedRun(bytes, file));
  return trainAlone(run, { ...options, out: options.out ?? dirname(file) }, stoppedAt);
}

async function trainAlone(
  run: TrainingRun,
  { threads, queue, taskFile, out, json }: TrainOptions,
  start?: StoppingPoint,
): Promise<void> {
  const folder = makeFolder(out ?? join('runs', `${runName(run)}-seed${run.seed}`));
  const interrupt = new AbortController();
  const unlisten = onInterrupt((signal) => {
    interrupt.abort();
    // The policy learned until now is kept, but the training is not done.
    process.exitCode = new InterruptedError(signal).exitCode;
  });
  const started = performance.now();
  const report = await trainOne(run, { threads, queue, folder, signal: interrupt.signal, start });
  unlisten();
  const wall_s = (performance.now() - started) / 1000;
  if (json) {
    const { environment, task, algorithm, seed } = run;
    const steps_per_s = report.steps / wall_s;
    console.log(
      JSON.stringify({ environment, task, algorithm, seed, wall_s, steps_per_s, ...report }, null, 2),
    );
  } else {
    console.log(`Played ${report.steps.toLocaleString('en-US')} windows in ${wall_s.toFixed(1)} s.`);
    const own = taskFile === undefined ? '' : ` --task-file ${taskFile}`;
    const env = run.environment === 'llmserve' ? '' : ` --env ${run.environment}`;
    console.log(`Evaluate the policy: servegym evaluate${env} --agent ${report.files.policy}${own}`);
  }
}

/** A training for each seed, as jobs. */
async function trainEachSeed(
  run: TrainingRun,
  seeds: readonly number[],
  { threads, queue, out, json }: TrainOptions,
): Promise<void> {
  const folder = out ?? join('runs', `${runName(run)}-seeds${seeds[0]}-${seeds.at(-1)}`);
  const message = `interrupted; the seeds that are done are in ${folder}`;
  const display = new ProgressDisplay();
  const started = performance.now();
  const show = (share: number) =>
    display.show(`${Math.floor(100 * share)} % of ${seeds.length} trainings`, share);
  const train = (jobs: JobEngine) => trainSeeds(jobs, run, seeds, makeFolder(folder), show);
  const reports = await withJobs({ threads, queue }, train, message).finally(() => display.end());
  const wallS = (performance.now() - started) / 1000;
  const { environment, task, algorithm } = run;
  const done = { environment, task, algorithm, folder, wallS, reports };
  printResult(
    json,
    () => seedsJson(done),
    () => seedsTable(done),
  );
}

function runName({ environment, task, algorithm, randomise }: TrainingRun): string {
  const name = `${environment === 'llmserve' ? '' : `${environment}-`}${task}-${algorithm}`;
  return randomise ? `${name}-randomised` : name;
}

function parseSeeds(text: string): number[] {
  const [from, to] = (/^(\d+)\.\.(\d+)$/.exec(text)?.slice(1) ?? []).map(Number);
  if (from !== undefined && to !== undefined && to >= from && to - from < MOST_SEEDS) {
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  }
  throw new InvalidArgumentError(
    `Expected a range of at most ${MOST_SEEDS} seeds such as 0..9, got \`${text}\`.`,
  );
}

function makeFolder(folder: string): string {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new InputError(`cannot write to ${folder}: ${(error as Error).message}`, {
      code: 'FILE_UNWRITABLE',
    });
  }
  return folder;
}
