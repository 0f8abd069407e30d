import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type Algorithm, agentsOf, learningTaskOf, type TrainingRun } from '@servegym/agents';
import { ENVIRONMENT_IDS } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import { counted } from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import { rangeOf, whole } from '../arguments/options.ts';
import { readInputs, scenarioOptions, taskNamed } from '../arguments/scenario-options.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError, untilInterrupted } from '../failure.ts';
import { queue, withJobs } from '../jobs.ts';
import { printResult } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';
import { seedsForm, trainOne, trainSeeds } from './train-one.ts';

/** Result of each algorithm, for `--help`. */
const ALGORITHMS: Readonly<Record<Algorithm, string>> = {
  ppo: 'a network',
  rollout: 'a network that changes what steady-state chooses, with --servers any',
  cem: 'the parameters of an autoscaler of fleet',
  static: 'the best configuration that never changes',
};

/** Windows to learn from, where the registry names no others. */
const STEPS = 120_000;
const DEFAULT_ENV = 'llmserve';

const MOST_THREADS = 32;
const MOST_SEEDS = 1000;

/** Environments on which something is learned. */
const LEARNABLE = ENVIRONMENT_IDS.filter((id) => agentsOf(id).algorithms.length > 0);

const options = {
  task: { value: '<id|file>', help: 'a task, or for llmserve a file that holds one of your own' },
  env: { value: '<id>', help: 'the environment', choices: LEARNABLE, default: DEFAULT_ENV },
  table: { value: '<file.parquet>', help: 'inferencegym: a table of your own' },
  ...scenarioOptions,
  algo: {
    value: '<name>',
    help: Object.entries(ALGORITHMS)
      .map(([name, what]) => `${name}: ${what}`)
      .join('; '),
    choices: Object.keys(ALGORITHMS) as readonly Algorithm[],
    default: 'ppo',
  },
  steps: whole('<n>', 1, 1e9, 'windows to learn from (default: 480000 for ppo on llmserve, else 120000)'),
  servers: {
    value: '<any>',
    help: 'instead of --task: another server and traffic in each episode, for one policy of any (ppo or rollout on llmserve, cem on fleet)',
    choices: ['any'],
    conflicts: ['task', ...Object.keys(scenarioOptions)],
  },
  seed: whole('<n>', 0, Number.MAX_SAFE_INTEGER, 'seed of weights, exploration and traffic', 0),
  seeds: {
    value: '<from..to>',
    help: 'a training for each of these seeds, side by side',
    parse: parseSeeds,
    conflicts: ['seed'],
  },
  threads: whole(
    '<n>',
    1,
    MOST_THREADS,
    'threads that play, or trainings at once; results do not depend on it',
    Math.min(MOST_THREADS, availableParallelism()),
  ),
  queue,
  out: { value: '<folder>', help: 'where to write (default: runs/<task>-<algo>-seed<n>)' },
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;

type TrainOptions = OptionValues<typeof options>;

export const trainCommand = () =>
  defineCommand({
    options,
    after: `ppo writes policy.safetensors, metrics and a learning curve; cem policy.json, metrics and curve; static policy.json. Ctrl-C
keeps what was learned and ends with 130. With --seeds each seed has a folder. --queue: the seeds are played by
\`servegym worker\`s.`,
    action: train,
  });

async function train(options: TrainOptions): Promise<void> {
  const { seeds, queue } = options;
  if (seeds === undefined && queue !== undefined)
    throw new InputError('expected --seeds beside --queue: a single training has no jobs for others');
  const run = await readRun(options);
  return seeds === undefined ? trainAlone(run, options) : trainEachSeed(run, seeds, options);
}

/** The run that the options ask for. @throws InputError for options that do not go together */
async function readRun(options: TrainOptions): Promise<TrainingRun> {
  const { env: environment, algo: algorithm, seed, servers } = options;
  const { algorithms, learnsVariants, learnsAny = [], ppoSteps = STEPS } = agentsOf(environment);
  const { steps = algorithm === 'ppo' ? ppoSteps : STEPS } = options;
  const task = await readTask(options);
  const { inputs } = await readInputs({ ...options, task: servers === undefined ? task : 'all' });
  const hasScenario = inputs.scenario !== undefined;
  const isVariantLearned = algorithm === 'ppo' && learnsVariants;
  if (algorithm !== 'ppo' && hasScenario)
    throw new InputError(`expected --algo ppo, the one that learns on traffic of your own, got ${algorithm}`);
  const choices = LEARNABLE.flatMap((id) =>
    (agentsOf(id).learnsAny ?? []).map((algo) => `--env ${id} --algo ${algo}`),
  );
  if (servers && !learnsAny.includes(algorithm))
    throw new InputError(
      `expected ${choices.join(' or ')} beside --servers any, got --env ${environment} --algo ${algorithm}`,
    );
  if (algorithm === 'rollout' && servers === undefined)
    throw new InputError('expected --servers any beside --algo rollout, which learns on no single task');
  if (!algorithms.includes(algorithm))
    throw new InputError(
      `expected --algo ${algorithms.join(', ')}, the one that learns ${environment}, got ${algorithm}`,
    );
  if (hasScenario && !isVariantLearned)
    throw new InputError(`expected --env ${DEFAULT_ENV} beside traffic of your own, got ${environment}`);
  const run = { environment, task, algorithm, steps, seed, ...inputs } as TrainingRun;
  // Refuses a scenario or a table that the task cannot be learned under, before anything is written.
  if (algorithm === 'ppo') learningTaskOf(run);
  return run;
}

/** The id of the task that is learned. @throws InputError or EnvironmentError */
async function readTask({ env, task: asked, servers }: TrainOptions): Promise<string> {
  if (servers !== undefined) return servers;
  const { environment: entry, learnsVariants } = agentsOf(env);
  const known = entry.tasks.shippedIds.map(String);
  const all = `${known.join(', ')}${learnsVariants ? ', or a file that holds one' : ''}`;
  if (asked === undefined) throw new InputError(`expected --task, one of ${all}`);
  const task = learnsVariants ? await taskNamed(asked, entry) : asked;
  if (known.includes(task) || task !== asked) return task;
  throw new InputError(`expected a task of ${env}, one of ${all}, got ${asked}`);
}

async function trainAlone(run: TrainingRun, { threads, task: asked, out, json }: TrainOptions) {
  const folder = makeFolder(out ?? join('runs', `${runName(run)}-seed${run.seed}`));
  const { signal, close } = untilInterrupted();
  const started = performance.now();
  const trained = await trainOne(run, folder, { threads, signal });
  close();
  // The policy learned until now is kept, but the training is not done.
  if (signal.aborted) process.exitCode = signal.reason.exitCode;
  const wall_s = (performance.now() - started) / 1000;
  const { environment, task, algorithm, seed } = run;
  const { steps, files } = trained;
  const report = { environment, task, algorithm, seed, wall_s, steps_per_s: steps / wall_s, ...trained };
  const own = asked === undefined || asked === task ? '' : ` --task ${asked}`;
  const env = environment === DEFAULT_ENV ? '' : ` --env ${environment}`;
  const played = `Played ${counted(steps, 'window')} in ${wall_s.toFixed(1)} s.`;
  const next = `Evaluate the policy: servegym evaluate ${files.policy}${env}${own}`;
  printResult(json, report, { text: () => `${played}\n${next}` });
}

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
  printResult(json, { ...run, folder, wallS, reports }, seedsForm);
}

function runName({ environment, task, algorithm }: TrainingRun): string {
  return `${environment === DEFAULT_ENV ? '' : `${environment}-`}${task}-${algorithm}`;
}

function parseSeeds(text: string): number[] {
  const [from, to] = rangeOf(text) ?? [0, MOST_SEEDS];
  if (to - from < MOST_SEEDS) return Array.from({ length: to - from + 1 }, (_, i) => from + i);
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
