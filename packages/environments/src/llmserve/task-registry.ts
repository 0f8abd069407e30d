import { TASK_IDS, type TaskId } from './schema.ts';
import { adversarialMultitenant } from './tasks/adversarial-multitenant.ts';
import { burstyWorkload } from './tasks/bursty-workload.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { staticWorkload } from './tasks/static-workload.ts';

/** The three tasks, easiest first. */
export const SERVE_TASKS: Readonly<Record<TaskId, ServeTask>> = {
  static_workload: staticWorkload,
  bursty_workload: burstyWorkload,
  adversarial_multitenant: adversarialMultitenant,
};

/** Tasks of people who play their own. */
const OWN_TASKS = new Map<string, ServeTask>();

/**
 * Makes a task known to this process: `reset({task_id})` plays it. One of the same id is replaced, but for the three
 * that there always are.
 * @throws RangeError for an id that belongs to one of these
 */
export function addServeTask(task: ServeTask): void {
  if (!isOwnTask(task.id)) {
    throw new RangeError(`Expected a task with an id of its own, got \`${task.id}\`, which is taken`);
  }
  OWN_TASKS.set(task.id, task);
}

/** True unless this is the id of one of the three tasks that there always are. */
export function isOwnTask(id: string): boolean {
  return !Object.hasOwn(SERVE_TASKS, id);
}

/** The task of this id; `undefined` when there is none. */
export function findServeTask(id: string): ServeTask | undefined {
  return isOwnTask(id) ? OWN_TASKS.get(id) : SERVE_TASKS[id as TaskId];
}

/** Ids of the tasks that this process knows: the three, easiest first, then those that were added. */
export function serveTaskIds(): string[] {
  return [...TASK_IDS, ...OWN_TASKS.keys()];
}
