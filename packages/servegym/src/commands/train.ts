import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { TASK_IDS, type TaskId } from '@servegym/environments';
import { Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { wholeNumber } from '../options.ts';
import { searchStatic } from '../training/search-static.ts';
import { trainPpo } from '../training/train-ppo.ts';
import type { TrainingPlan, TrainingReport } from '../training/training-plan.ts';

interface TrainOptions {
  readonly algo: keyof typeof ALGORITHMS;
  readonly task: TaskId;
  readonly steps: number;
  readonly seed: number;
  readonly threads: number;
  readonly out?: string;
  readonly json: boolean;
}

const ALGORITHMS = {
  ppo: trainPpo,
  static: searchStatic,
} as const satisfies Record<string, (plan: TrainingPlan) => Promise<TrainingReport>>;

const MOST_THREADS = 32;

/** `servegym train`: learns a policy on the training split and keeps it in a folder. */
export function trainCommand(): Command {
  return new Command('train')
    .description('learn a policy on the training traffic of a task')
    .addOption(new Option('--task <id>', 'the task').choices(TASK_IDS).makeOptionMandatory())
    .addOption(
      new Option('--algo <name>', 'ppo: a network; static: the best configuration that never changes')
        .choices(Object.keys(ALGORITHMS))
        .default('ppo'),
    )
    .addOption(
      new Option('--steps <n>', 'windows to learn from (ppo)')
        .default(120_000)
        .argParser(wholeNumber(1, 1e9)),
    )
    .addOption(
      new Option('--seed <n>', 'seed of weights, exploration and traffic')
        .default(0)
        .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    )
    .addOption(
      new Option('--threads <n>', 'threads that play (ppo); the result does not depend on it')
        .default(Math.min(MOST_THREADS, availableParallelism()))
        .argParser(wholeNumber(1, MOST_THREADS)),
    )
    .option('--out <folder>', 'where to write (default: runs/<task>-<algo>-seed<n>)')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      '\nppo writes policy.safetensors, metrics.jsonl and learning-curve.svg; static writes policy.json.\nCtrl-C stops early and keeps what was learned.',
    )
    .action(train);
}

async function train({ algo, out, json, ...options }: TrainOptions): Promise<void> {
  const folder = out ?? join('runs', `${options.task}-${algo}-seed${options.seed}`);
  makeFolder(folder);
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort());
  const started = performance.now();
  const report = await ALGORITHMS[algo]({ ...options, folder, signal: interrupt.signal });
  const wall_s = (performance.now() - started) / 1000;
  if (json) {
    const run = { task: options.task, algorithm: algo, seed: options.seed };
    console.log(JSON.stringify({ ...run, wall_s, steps_per_s: report.steps / wall_s, ...report }, null, 2));
  } else {
    console.log(`Played ${report.steps.toLocaleString('en-US')} windows in ${wall_s.toFixed(1)} s.`);
    console.log(`Evaluate the policy: servegym evaluate --agent ${report.files.policy}`);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new InputError(`cannot write to ${folder}: ${(error as Error).message}`);
  }
}
