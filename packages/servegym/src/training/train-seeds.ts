import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobEngine, Json } from '@servegym/agents/jobs';
import type { ServeScenario } from '@servegym/environments';
import { shareTrace } from '../jobs/job-trace.ts';
import { readInputBytes } from '../read-input-file.ts';
import { networkFiles } from './network-files.ts';
import type { TrainNetworkInput, TrainNetworkOutput } from './train-network-job.ts';
import { TrainingLog } from './training-log.ts';
import type { TrainingReport } from './training-plan.ts';

/** A training for each of several seeds. */
export interface SeedsPlan {
  readonly environment: string;
  readonly task: string;
  /** Windows to learn from, for each seed. */
  readonly steps: number;
  readonly seeds: readonly number[];
  /** `llmserve`: traffic, trace and shift. */
  readonly scenario: ServeScenario;
  /** `inferencegym`: the file of a table of one's own. */
  readonly table?: string;
  /** It exists; each seed gets a folder in it. */
  readonly folder: string;
  readonly onProgress: (share: number) => void;
}

/** What came of a seed. */
export interface SeedReport extends TrainingReport {
  readonly seed: number;
}

/** Trains a network with PPO for each seed, as jobs, and writes for each what `train` with that seed writes. */
export async function trainSeeds(jobs: JobEngine, plan: SeedsPlan): Promise<SeedReport[]> {
  const { environment, task, steps, seeds, scenario, folder, onProgress } = plan;
  const trace = await shareTrace(jobs, scenario);
  const table = plan.table === undefined ? undefined : await jobs.share(await readInputBytes(plan.table));
  const shared = [trace, table].filter((name) => name !== undefined);
  const inputs = seeds.map(
    (seed): TrainNetworkInput => ({
      ...{ environment, task, steps, seed, scenario },
      ...(trace !== undefined && { trace }),
      ...(table !== undefined && { table }),
    }),
  );
  const reports = new Map<number, SeedReport>();
  await jobs.run(
    inputs.map((input) => ({ kind: 'train-network', input: input as unknown as Json, shared })),
    {
      onProgress: ({ share }) => onProgress(share),
      // As they come: what is trained stays when the run is stopped.
      onResult(result, index) {
        const seed = seeds[index]!;
        reports.set(seed, writeSeed(task, seed, folder, result as unknown as TrainNetworkOutput));
      },
    },
  );
  return seeds.map((seed) => reports.get(seed)!);
}

function writeSeed(task: string, seed: number, folder: string, output: TrainNetworkOutput): SeedReport {
  const own = join(folder, `seed-${seed}`);
  mkdirSync(own, { recursive: true });
  const log = new TrainingLog(own);
  for (const line of output.metrics) log.append(line);
  const drawn = log.finish(`PPO on ${task}, seed ${seed}`);
  const { policy, onnx, checkpoint } = networkFiles(own);
  writeFileSync(onnx, Buffer.from(output.onnx, 'base64'));
  writeFileSync(checkpoint, Buffer.from(output.checkpoint, 'base64'));
  // The last one: where there is a policy, everything is.
  writeFileSync(policy, Buffer.from(output.policy, 'base64'));
  return {
    ...{ seed, steps: output.steps, final_return: log.finalReturn },
    files: { policy, onnx, checkpoint, ...drawn },
  };
}
