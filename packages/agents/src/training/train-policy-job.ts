import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { decodeGymTable } from '../inferencegym/learn/gym-learning-task.ts';
import { decodeActor } from '../learning/trained-actor.ts';
import { addSharedTask, addSharedTrace, shareTask, shareTrace } from '../llmserve/shared-inputs.ts';
import { type TrainedRun, trainPolicy } from './train-policy.ts';
import type { TrainingRun } from './training-run.ts';

/** A run, and names of the shared bytes that it needs. */
interface TrainPolicyInput {
  readonly run: Omit<TrainingRun, 'table'>;
  /** Trace of one's own that the scenario names. */
  readonly trace?: string;
  /** Task of one's own that `run.task` names. */
  readonly ownTask?: string;
  /** Table of one's own, for `inferencegym`. */
  readonly table?: string;
  /** Network that `distill` goes on from, without lessons. */
  readonly clone?: string;
}

/** A `TrainedRun` as JSON, its files in base64. */
type TrainPolicyOutput = Omit<TrainedRun, 'files'> & { readonly files: Readonly<Record<string, string>> };

/** The job `train-policy`: trains a policy on one thread. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { run, trace, ownTask, table, clone } = input as unknown as TrainPolicyInput;
  addSharedTask(ownTask, context);
  addSharedTrace(run.scenario ?? {}, trace, context);
  const own = table !== undefined && { table: await decodeGymTable(context.shared(table)) };
  const start = clone === undefined ? undefined : { actor: decodeActor(context.shared(clone)).weights };
  const { files, ...trained } = await trainPolicy(
    { ...run, ...own },
    { start, onProgress: ({ share }) => context.report(share) },
  );
  const output: TrainPolicyOutput = {
    ...trained,
    files: Object.fromEntries(
      Object.entries(files).map(([kind, file]) => [kind, Buffer.from(file).toString('base64')]),
    ),
  };
  return output as unknown as Json;
}

export interface SeedsOptions {
  /** Network that `distill` goes on from, without lessons: a file of `encodeActor`. */
  readonly clone?: Uint8Array;
  readonly onProgress?: (share: number) => void;
  /** Called as each training ends: a run that is stopped keeps those. */
  readonly onTrained: (seed: number, trained: TrainedRun) => void;
}

/** Trains with each of several seeds, a job each: the results are those of `trainPolicy`. */
export async function trainSeeds(
  jobs: JobEngine,
  { table: ownTable, ...run }: Omit<TrainingRun, 'seed'>,
  seeds: readonly number[],
  { clone: cloneFile, onProgress, onTrained }: SeedsOptions,
): Promise<void> {
  const trace = await shareTrace(jobs, run.scenario ?? {});
  const ownTask = run.environment === 'llmserve' ? await shareTask(jobs, run.task) : undefined;
  const table = ownTable && (await jobs.share(ownTable.bytes));
  const clone = cloneFile && (await jobs.share(cloneFile));
  const shared = [trace, ownTask, table, clone].filter((name) => name !== undefined);
  await jobs.run(
    seeds.map((seed) => {
      const input: TrainPolicyInput = {
        run: { ...run, seed },
        ...(trace !== undefined && { trace }),
        ...(ownTask !== undefined && { ownTask }),
        ...(table !== undefined && { table }),
        ...(clone !== undefined && { clone }),
      };
      return { kind: 'train-policy', input: input as unknown as Json, shared };
    }),
    {
      onProgress: ({ share }) => onProgress?.(share),
      onResult(output, index) {
        const { files, ...trained } = output as unknown as TrainPolicyOutput;
        const { policy, ...others } = Object.fromEntries(
          Object.entries(files).map(([kind, file]) => [kind, Buffer.from(file, 'base64')]),
        );
        onTrained(seeds[index], { ...trained, files: { ...others, policy: policy! } });
      },
    },
  );
}
