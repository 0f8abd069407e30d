import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  agentsOf,
  finalReturn,
  trainSeeds as submitSeeds,
  type TrainedRun,
  type TrainingProgress,
  type TrainingRun,
  trainPolicy,
} from '@servegym/agents';
import type { JobEngine } from '@servegym/jobs';
import { openJobs } from '../jobs.ts';
import { ProgressDisplay } from '../output/progress.ts';
import {
  checkpointPath,
  learningCurveTitle,
  policyPaths,
  replaceFile,
  TrainingLog,
  type TrainingReport,
  writePolicy,
} from './training-folder.ts';
import { progressLine, timedLine } from './training-report.ts';

/** Time between two checkpoints of PPO, s. */
const CHECKPOINT_EVERY_S = 20;

/** Means of a training; without a queue of workers, threads of this process play lessons and generations. */
type Means = Parameters<typeof trainPolicy>[1] & {
  readonly threads: number;
  readonly queue?: string | undefined;
};

/** Trains a policy. Shows the progress, and writes metrics, checkpoints and the policy into a folder that exists. */
export async function trainOne(
  run: TrainingRun,
  folder: string,
  { threads, queue, signal, start }: Means,
): Promise<TrainingReport> {
  const { environment, algorithm, lessons } = run;
  const resumed = start !== undefined && 'checkpoint' in start ? start.checkpoint.steps : undefined;
  const firstStep = resumed ?? 0;
  let log = resumed === undefined ? undefined : new TrainingLog(folder, resumed);
  let lessonsGiven = start !== undefined && 'shown' in start ? start.shown.length : 0;
  let started = performance.now();
  let written = started;
  const display = new ProgressDisplay();
  const keepAndShow = (progress: TrainingProgress) => {
    const now = performance.now();
    const clock = { firstStep, wallSeconds: (now - started) / 1000 };
    if (progress.kind === 'lesson') {
      lessonsGiven = progress.lesson.shown.length;
      replaceFile(checkpointPath(folder), progress.checkpoint());
      // The speed that is shown is that of PPO.
      started = performance.now();
    } else if (progress.kind === 'update' && now - written >= 1000 * CHECKPOINT_EVERY_S) {
      replaceFile(checkpointPath(folder), progress.checkpoint());
      written = now;
    }
    if ('metrics' in progress) {
      log ??= new TrainingLog(folder);
      log.append(timedLine(progress.metrics, clock));
    }
    const line = progressLine(run, progress, clock);
    if (progress.kind === 'update') display.show(line, Math.min(1, progress.update.steps / run.steps));
    else console.error(line);
  };

  const jobs =
    agentsOf(environment).learnsVariants && (algorithm === 'distill' || algorithm === 'cem')
      ? await openJobs({ threads, queue })
      : undefined;
  try {
    const trained = await trainPolicy(run, { threads, jobs, start, signal, onProgress: keepAndShow });
    const isTaught = resumed === undefined && algorithm === 'distill' && lessons !== undefined;
    if (isTaught && lessonsGiven < lessons.episodes) {
      console.error(`stopped after ${lessonsGiven} of ${lessons.episodes} lessons; train --resume goes on`);
    }
    const paths = policyPaths(folder, algorithm);
    writePolicy(paths, trained.files);
    const drawn = log?.finish(learningCurveTitle(run));
    return {
      steps: trained.steps,
      final_return: log === undefined ? trained.finalReturn : finalReturn(log.lines),
      files: { ...paths, ...drawn },
    };
  } finally {
    display.end();
    await jobs?.close();
  }
}

/** Outcome of a seed. */
export interface SeedReport extends TrainingReport {
  readonly seed: number;
}

/**
 * Trains with each seed, as jobs, and writes for each what `trainOne` with that seed writes.
 * @param folder it exists; each seed gets a folder in it
 */
export async function trainSeeds(
  jobs: JobEngine,
  run: Omit<TrainingRun, 'seed'>,
  seeds: readonly number[],
  folder: string,
  onProgress?: (share: number) => void,
): Promise<SeedReport[]> {
  const reports = new Map<number, SeedReport>();
  await submitSeeds(jobs, run, seeds, {
    onProgress,
    onTrained: (seed, trained) =>
      reports.set(seed, writeSeed({ ...run, seed }, trained, join(folder, `seed-${seed}`))),
  });
  return seeds.map((seed) => reports.get(seed)!);
}

function writeSeed(run: TrainingRun, { steps, finalReturn, metrics, files }: TrainedRun, folder: string) {
  mkdirSync(folder, { recursive: true });
  const paths = policyPaths(folder, run.algorithm);
  const log = metrics.length > 0 ? new TrainingLog(folder) : undefined;
  for (const line of metrics) log?.append(line);
  const drawn = log?.finish(learningCurveTitle(run));
  writePolicy(paths, files);
  return { seed: run.seed, steps, final_return: finalReturn, files: { ...paths, ...drawn } };
}
