import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { encodeServeActor, type PpoUpdate, trainServePpo } from '@servegym/agents';
import { TASK_IDS, type TaskId } from '@servegym/environments';
import { Command, Option } from 'commander';
import { InputError } from '../input-error.ts';
import { wholeNumber } from '../options.ts';
import { learningCurveSvg } from '../reports/learning-curve.ts';
import { progressLine, updateJson } from '../reports/training-report.ts';

interface TrainOptions {
  readonly task: TaskId;
  readonly steps: number;
  readonly seed: number;
  readonly threads: number;
  readonly out?: string;
  readonly json: boolean;
}

const MOST_THREADS = 32;
/** Lines of progress in all, where they are not drawn over each other. */
const PROGRESS_LINES = 20;

/** `servegym train`: learns a policy on the training split and keeps weights, metrics and learning curve in a folder. */
export function trainCommand(): Command {
  return new Command('train')
    .description('learn a policy with PPO on the training traffic of a task')
    .addOption(new Option('--task <id>', 'the task').choices(TASK_IDS).makeOptionMandatory())
    .addOption(
      new Option('--steps <n>', 'windows to learn from').default(120_000).argParser(wholeNumber(1, 1e9)),
    )
    .addOption(
      new Option('--seed <n>', 'seed of weights, exploration and traffic')
        .default(0)
        .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    )
    .addOption(
      new Option('--threads <n>', 'threads that play; the result does not depend on it')
        .default(Math.min(MOST_THREADS, availableParallelism()))
        .argParser(wholeNumber(1, MOST_THREADS)),
    )
    .option('--out <folder>', 'where to write (default: runs/<task>-ppo-seed<n>)')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      '\nWrites actor.safetensors, metrics.jsonl and learning-curve.svg. Ctrl-C stops early and keeps what was learned.',
    )
    .action(train);
}

async function train({ task, steps, seed, threads, out, json }: TrainOptions): Promise<void> {
  const folder = out ?? join('runs', `${task}-ppo-seed${seed}`);
  makeFolder(folder);
  const files = {
    weights: join(folder, 'actor.safetensors'),
    metrics: join(folder, 'metrics.jsonl'),
    curve: join(folder, 'learning-curve.svg'),
  };
  writeFileSync(files.metrics, '');

  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort());
  const started = performance.now();
  const updates: PpoUpdate[] = [];
  let lines = 0;
  const actor = await trainServePpo({
    ...{ taskId: task, steps, seed, threads, signal: interrupt.signal },
    onUpdate(update) {
      updates.push(update);
      const progress = { plannedSteps: steps, wallSeconds: (performance.now() - started) / 1000 };
      appendFileSync(files.metrics, `${JSON.stringify(updateJson(update, progress))}\n`);
      const line = progressLine(update, progress);
      if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line}`);
      else if (update.steps / steps > lines / PROGRESS_LINES) {
        console.error(line);
        lines = Math.floor((update.steps / steps) * PROGRESS_LINES) + 1;
      }
    },
  });
  if (process.stderr.isTTY) process.stderr.write('\n');

  const wallSeconds = (performance.now() - started) / 1000;
  const curve = updates.flatMap((update) =>
    update.meanReturn === null ? [] : [{ steps: update.steps, value: update.meanReturn }],
  );
  writeFileSync(files.weights, encodeServeActor(actor));
  if (curve.length > 0) writeFileSync(files.curve, learningCurveSvg(`PPO on ${task}, seed ${seed}`, curve));
  const trained = updates.at(-1)!.steps;
  if (json) {
    const speed = { wall_s: wallSeconds, steps_per_s: trained / wallSeconds };
    const report = {
      task,
      algorithm: 'ppo',
      seed,
      steps: trained,
      ...speed,
      final_return: curve.at(-1)?.value ?? null,
    };
    console.log(JSON.stringify({ ...report, files }, null, 2));
  } else {
    console.log(`Trained on ${trained.toLocaleString('en-US')} windows in ${wallSeconds.toFixed(1)} s.`);
    console.log(`Evaluate it: servegym evaluate --weights ${files.weights}`);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new InputError(`cannot write to ${folder}: ${(error as Error).message}`);
  }
}
