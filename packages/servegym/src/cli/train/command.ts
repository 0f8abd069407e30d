import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { type LearningTask, listPolicies, SERVE_PPO, serveLearningTask } from '@servegym/agents';
import { Command, InvalidArgumentError, Option } from 'commander';
import { loadTask } from '../arguments/load-task.ts';
import { wholeNumber } from '../arguments/options.ts';
import { readOwnTable } from '../arguments/read-table.ts';
import { addScenarioOptions, readScenario, type ScenarioArguments } from '../arguments/scenario-options.ts';
import { taskFileOption } from '../arguments/task-file-option.ts';
import { InputError } from '../input-error.ts';
import { openStoppableJobs, queueOption } from '../jobs/open-jobs.ts';
import { ProgressDisplay } from '../output/progress-display.ts';
import { readCheckpoint } from './checkpoint-file.ts';
import { LEARNING_TASKS } from './learning-tasks.ts';
import { resumeTraining } from './resume-training.ts';
import { searchRegimes } from './search-regimes.ts';
import { searchStatic } from './search-static.ts';
import { seedsJson, seedsTable } from './seeds-report.ts';
import { trainDistilled } from './train-distilled.ts';
import { trainNetwork } from './train-network.ts';
import { type SeedReport, trainSeeds } from './train-seeds.ts';
import type { Algorithm, TrainingPlan, TrainingReport } from './training-plan.ts';

interface TrainOptions extends ScenarioArguments {
  readonly env: keyof typeof LEARNING_TASKS;
  readonly algo: Algorithm;
  readonly task?: string;
  readonly taskFile?: string;
  readonly steps: number;
  readonly seed: number;
  readonly seeds?: readonly number[];
  readonly threads: number;
  readonly queue?: string;
  readonly teacher: string;
  readonly lessons: number;
  readonly table?: string;
  readonly resume?: string;
  readonly out?: string;
  readonly json: boolean;
}

/** What each learns, for `--help`. */
const ALGORITHMS: Readonly<Record<Algorithm, string>> = {
  ppo: 'a network',
  distill: 'a network that first does what a teacher does',
  cem: 'a configuration for each regime of traffic',
  static: 'the best configuration that never changes',
};

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
      new Option('--env <id>', 'the environment').choices(Object.keys(LEARNING_TASKS)).default('llmserve'),
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
      new Option('--steps <n>', 'windows to learn from (static: as many as it takes)')
        .default(120_000)
        .argParser(wholeNumber(1, 1e9)),
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
    .addOption(queueOption())
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
Ctrl-C stops early, distill after the round of lessons at hand, and keeps what was learned. With --seeds 0..9 each seed gets a folder seed-<n> with the files that
--seed <n> writes; Ctrl-C then keeps the seeds that are done. --queue has the seeds trained, or the lessons and
generations of a single training with distill or cem played, by \`servegym worker\`s.`,
    )
    .action(train);
}

async function train(options: TrainOptions): Promise<void> {
  if (options.seeds !== undefined) return trainEachSeed(options, options.seeds);
  if (options.queue !== undefined && !['cem', 'distill'].includes(options.algo)) {
    throw new InputError(
      `expected --seeds beside --queue: a single training with --algo ${options.algo} has no jobs for others`,
    );
  }
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort());
  const started = performance.now();
  const { run, report } = await (options.resume === undefined
    ? begin(options, interrupt.signal)
    : goOn(options.resume, options, interrupt.signal));
  const wall_s = (performance.now() - started) / 1000;
  if (options.json) {
    console.log(JSON.stringify({ ...run, wall_s, steps_per_s: report.steps / wall_s, ...report }, null, 2));
  } else {
    console.log(`Played ${report.steps.toLocaleString('en-US')} windows in ${wall_s.toFixed(1)} s.`);
    const taskFile = options.taskFile === undefined ? '' : ` --task-file ${options.taskFile}`;
    console.log(`Evaluate the policy: servegym evaluate --agent ${report.files.policy}${taskFile}`);
  }
}

async function begin(options: TrainOptions, signal: AbortSignal) {
  const { env, algo, steps, seed, threads, out } = options;
  const task = await readTask(options);
  const folder = makeFolder(
    out ?? join('runs', `${env === 'llmserve' ? '' : `${env}-`}${task}-${algo}-seed${seed}`),
  );
  const plan = { steps, seed, threads, queue: options.queue, folder, signal };
  return { run: { environment: env, task, algorithm: algo, seed }, report: await learn(options, task, plan) };
}

async function learn(
  options: TrainOptions,
  task: string,
  plan: Omit<TrainingPlan, 'task'>,
): Promise<TrainingReport> {
  const { algo, teacher, lessons: episodes } = options;
  const learningTask = await findLearningTask(options, task);
  if (algo === 'ppo') return trainNetwork({ ...plan, algorithm: algo, learningTask });
  const servePlan = { ...plan, task };
  switch (algo) {
    case 'distill':
      return trainDistilled(servePlan, { teacher, episodes });
    case 'cem':
      return searchRegimes(servePlan);
    case 'static':
      return searchStatic(servePlan);
  }
}

/** A training for each seed, as jobs. */
async function trainEachSeed(options: TrainOptions, seeds: readonly number[]): Promise<void> {
  const { env, algo, steps, teacher, lessons, table, out } = options;
  const task = await readTask(options);
  const scenario = await readServeScenario(options, task);
  // Says what does not go together before anything is trained.
  await findLearningTask(options, task);
  const name = `${env === 'llmserve' ? '' : `${env}-`}${task}-${algo}-seeds${seeds[0]}-${seeds.at(-1)}`;
  const folder = out ?? join('runs', name);
  const jobs = await openStoppableJobs(options, `interrupted; the seeds that are done are in ${folder}`);
  const display = new ProgressDisplay();
  const started = performance.now();
  let reports: SeedReport[];
  try {
    makeFolder(folder);
    reports = await trainSeeds(jobs, {
      ...{ environment: env, task, algorithm: algo, steps, seeds, scenario, table, folder },
      lessons: { teacher, episodes: lessons },
      onProgress: (share) => display.show(`${Math.floor(100 * share)} % of ${seeds.length} trainings`, share),
    });
  } finally {
    display.end();
    await jobs.close();
  }
  const wallS = (performance.now() - started) / 1000;
  const run = { environment: env, task, algorithm: algo, folder, wallS, reports };
  console.log(options.json ? JSON.stringify(seedsJson(run), null, 2) : seedsTable(run));
}

/** Goes on with a run that stopped. */
async function goOn(file: string, { threads, out }: TrainOptions, signal: AbortSignal) {
  const stopped = await readCheckpoint(file);
  const { learningTask, algorithm, seed } = stopped;
  const { environment, taskId: task } = learningTask;
  const report = await resumeTraining(stopped, { threads, folder: makeFolder(out ?? dirname(file)), signal });
  return { run: { environment: environment.id, task, algorithm, seed }, report };
}

/** What is learned. @throws InputError for what does not go together */
async function findLearningTask(options: TrainOptions, task: string): Promise<LearningTask> {
  const { env, algo, table } = options;
  const scenario = await readServeScenario(options, task);
  if (algo !== 'ppo' && Object.keys(scenario).length > 0) {
    throw new InputError(`expected --algo ppo, the one that learns on traffic of your own, got ${algo}`);
  }
  if (algo !== 'ppo' && env !== 'llmserve')
    throw new InputError(`expected --algo ppo, the one that learns ${env}, got ${algo}`);
  if (Object.keys(scenario).length > 0) {
    if (env === 'llmserve') return serveLearningTask(task, SERVE_PPO, scenario);
    throw new InputError(`expected --env llmserve beside traffic of your own, got ${env}`);
  }
  if (table === undefined) return LEARNING_TASKS[env]!.find(task);
  if (env !== 'inferencegym') throw new InputError(`expected --env inferencegym beside --table, got ${env}`);
  return LEARNING_TASKS[env]!.find(task, await readOwnTable(table));
}

/** The scenario that a task of `llmserve` is learned under; a task of another environment is not known to it. */
function readServeScenario(options: TrainOptions, task: string) {
  return readScenario(options, options.env === 'llmserve' ? task : undefined);
}

/** The id of the task that is learned. @throws InputError or ServeTaskError */
async function readTask({ env, task, taskFile }: TrainOptions): Promise<string> {
  if (taskFile !== undefined) {
    if (env === 'llmserve') return (await loadTask(taskFile)).id;
    throw new InputError(`expected --env llmserve beside --task-file, got ${env}`);
  }
  const { taskIds } = LEARNING_TASKS[env]!;
  if (task === undefined) {
    const ownTask = env === 'llmserve' ? ', or --task-file' : '';
    throw new InputError(`expected --task, one of ${taskIds.join(', ')}${ownTask}`);
  }
  if (!taskIds.includes(task)) {
    throw new InputError(`expected a task of ${env}, one of ${taskIds.join(', ')}, got ${task}`);
  }
  return task;
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
    throw new InputError(`cannot write to ${folder}: ${(error as Error).message}`);
  }
  return folder;
}
