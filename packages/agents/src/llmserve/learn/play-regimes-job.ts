import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { addSharedTask, shareTask } from '../shared-inputs.ts';
import { playRegimes, type RegimeTrial } from './search-regimes.ts';

/** A table of regimes to be played. */
interface PlayRegimesInput extends RegimeTrial {
  /** A task of one's own that `taskId` names: the name of its shared bytes. */
  readonly ownTask?: string;
}

/** The job `play-regimes`: plays a table of regimes; answers its mean return. */
export function runJob(input: Json, context: JobContext): Json {
  const { ownTask, ...trial } = input as unknown as PlayRegimesInput;
  addSharedTask(ownTask, context);
  return playRegimes(trial);
}

/** Mean return of each trial, a trial a job. */
export async function playRegimesWithJobs(
  jobs: JobEngine,
  trials: readonly RegimeTrial[],
): Promise<number[]> {
  const { taskId } = trials[0];
  const ownTask = await shareTask(jobs, taskId);
  const returns = await jobs.run(
    trials.map((trial) => {
      const input: PlayRegimesInput = { ...trial, ...(ownTask !== undefined && { ownTask }) };
      return {
        kind: 'play-regimes',
        input: input as unknown as Json,
        ...(ownTask !== undefined && { shared: [ownTask] }),
      };
    }),
  );
  return returns as number[];
}
