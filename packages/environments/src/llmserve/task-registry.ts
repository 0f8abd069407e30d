import { TASK_IDS, type TaskId } from './schema.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { SERVE_TASKS } from './tasks/serve-tasks.ts';

/** Tasks of people who play their own. */
const OWN_TASKS = new Map<string, ServeTask>();

/**
 * Makes a task known to this process: `reset({task_id})` plays it. One of the same id is replaced, but for the three
 * that there always are.
 * @throws RangeError for an id that belongs to one of these
 */
export function addServeTask(task: ServeTask): void {
  if (Object.hasOwn(SERVE_TASKS, task.id)) {
    throw new RangeError(`Expected a task with an id of its own, got \`${task.id}\`, which is taken`);
  }
  OWN_TASKS.set(task.id, task);
}

/** The task of this id; `undefined` when there is none. */
export function findServeTask(id: string): ServeTask | undefined {
  return Object.hasOwn(SERVE_TASKS, id) ? SERVE_TASKS[id as TaskId] : OWN_TASKS.get(id);
}

/** Ids of the tasks that this process knows: the three, easiest first, then those that were added. */
export function serveTaskIds(): string[] {
  return [...TASK_IDS, ...OWN_TASKS.keys()];
}
