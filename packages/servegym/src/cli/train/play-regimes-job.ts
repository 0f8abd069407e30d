import { playRegimes, type RegimeTrial } from '@servegym/agents';
import type { JobContext, Json } from '@servegym/jobs';
import { addSharedTask } from '../jobs/job-task.ts';

/** A table of regimes to be played. */
export interface PlayRegimesInput extends RegimeTrial {
  /** A task of one's own that `taskId` names: the name of its shared bytes. */
  readonly ownTask?: string;
}

/** Plays a table of regimes; answers its mean return. */
export function runJob(input: Json, context: JobContext): Json {
  const { ownTask, ...trial } = input as unknown as PlayRegimesInput;
  addSharedTask(ownTask, context);
  return playRegimes(trial);
}
