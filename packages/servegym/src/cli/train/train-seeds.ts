import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServeScenario } from '@servegym/environments';
import type { JobEngine, Json } from '@servegym/jobs';
import { readInputBytes } from '../arguments/read-input-file.ts';
import { shareTask } from '../jobs/job-task.ts';
import { shareTrace } from '../jobs/job-trace.ts';
import { learningCurveTitle } from './learning-curve.ts';
import type { TrainPolicyInput, TrainPolicyOutput } from './train-policy-job.ts';
import { networkFiles, searchedFiles } from './trained-files.ts';
import { TrainingLog } from './training-log.ts';
import { type Algorithm, isNetworkAlgorithm, type Lessons, type TrainingReport } from './training-plan.ts';

/** A training for each of several seeds. */
export interface SeedsPlan {
  readonly environment: string;
  readonly task: string;
  readonly algorithm: Algorithm;
  /** Windows to learn from, for each seed, where the algorithm can tell in advance. */
  readonly steps: number;
  readonly seeds: readonly number[];
  /** `distill`: whom to learn from first. */
  readonly lessons: Lessons;
  /** `ppo` on `llmserve`: traffic, trace and shift. */
  readonly scenario: ServeScenario;
  /** `inferencegym`: the file of a table of one's own. */
  readonly table?: string;
  /** It exists; each seed gets a folder in it. */
  readonly folder: string;
  readonly onProgress?: (share: number) => void;
}

/** What came of a seed. */
export interface SeedReport extends TrainingReport {
  readonly seed: number;
}

/** Trains with each seed, as jobs, and writes for each what `train` with that seed writes. */
export async function trainSeeds(jobs: JobEngine, plan: SeedsPlan): Promise<SeedReport[]> {
  const { environment, task, algorithm, steps, seeds, lessons, scenario, onProgress } = plan;
  const trace = await shareTrace(jobs, scenario);
  const table = plan.table === undefined ? undefined : await jobs.share(await readInputBytes(plan.table));
  const ownTask = environment === 'llmserve' ? await shareTask(jobs, task) : undefined;
  const shared = [trace, ownTask, table].filter((name) => name !== undefined);
  const inputs = seeds.map(
    (seed): TrainPolicyInput => ({
      ...{ environment, task, algorithm, steps, seed, scenario },
      ...(algorithm === 'distill' && { start: lessons }),
      ...(trace !== undefined && { trace }),
      ...(ownTask !== undefined && { ownTask }),
      ...(table !== undefined && { table }),
    }),
  );
  const reports = new Map<number, SeedReport>();
  await jobs.run(
    inputs.map((input) => ({ kind: 'train-policy', input: input as unknown as Json, shared })),
    {
      onProgress: ({ share }) => onProgress?.(share),
      // As they come: what is trained stays when the run is stopped.
      onResult(result, index) {
        const seed = seeds[index]!;
        reports.set(seed, writeSeed(plan, seed, result as unknown as TrainPolicyOutput));
      },
    },
  );
  return seeds.map((seed) => reports.get(seed)!);
}

function writeSeed(
  { task, algorithm, folder }: SeedsPlan,
  seed: number,
  { steps, final_return, files, metrics }: TrainPolicyOutput,
): SeedReport {
  const own = join(folder, `seed-${seed}`);
  mkdirSync(own, { recursive: true });
  const drawn = metrics.length > 0 && drawMetrics(own, metrics, learningCurveTitle(algorithm, task, seed));
  const paths: Readonly<Record<string, string>> & { readonly policy: string } = isNetworkAlgorithm(algorithm)
    ? networkFiles(own)
    : searchedFiles(own);
  // The policy comes last: where there is one, everything is.
  for (const [kind, file] of Object.entries(files)) {
    writeFileSync(paths[kind]!, Buffer.from(file, 'base64'));
  }
  return { seed, steps, final_return, files: { ...paths, ...drawn } };
}

function drawMetrics(folder: string, metrics: TrainPolicyOutput['metrics'], title: string) {
  const log = new TrainingLog(folder);
  for (const line of metrics) log.append(line);
  return log.finish(title);
}
