import {
  addServeTask,
  findServeTask,
  isOwnTask,
  parseServeTask,
  type ServeTask,
} from '@servegym/environments';
import type { JobContext, JobEngine } from '@servegym/jobs';

/** The task of this id where it is one of the caller's own; `undefined` for one that comes with ServeGym. */
export function findOwnTask(taskId: string): ServeTask | undefined {
  return isOwnTask(taskId) ? findServeTask(taskId) : undefined;
}

/** Shares a task of the caller's own; `undefined` for one that comes with ServeGym. */
export async function shareTask(jobs: JobEngine, taskId: string): Promise<string | undefined> {
  const task = findOwnTask(taskId);
  return task && jobs.share(Buffer.from(JSON.stringify(task)));
}

/** Makes the task known to a job that was given its shared bytes, in the place of another's of the same id. */
export function addSharedTask(shared: string | undefined, context: JobContext): void {
  if (shared === undefined) return;
  const task = JSON.parse(Buffer.from(context.shared(shared)).toString());
  addServeTask(parseServeTask(task, 'What the job was given'));
}
