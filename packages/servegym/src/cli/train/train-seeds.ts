import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { trainSeeds as submitSeeds, type TrainedRun, type TrainingRun } from '@servegym/agents';
import type { JobEngine } from '@servegym/jobs';
import {
  learningCurveTitle,
  policyPaths,
  TrainingLog,
  type TrainingReport,
  writePolicy,
} from './training-folder.ts';

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
  const drawn = metrics.length > 0 && drawMetrics(folder, metrics, learningCurveTitle(run));
  writePolicy(paths, files);
  return { seed: run.seed, steps, final_return: finalReturn, files: { ...paths, ...drawn } };
}

function drawMetrics(folder: string, metrics: TrainedRun['metrics'], title: string) {
  const log = new TrainingLog(folder);
  for (const line of metrics) log.append(line);
  return log.finish(title);
}
