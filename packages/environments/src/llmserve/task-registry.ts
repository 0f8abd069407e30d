import { Tasks } from '../tasks.ts';
import type { TaskId } from './schema.ts';
import { adversarialMultitenant } from './tasks/adversarial-multitenant.ts';
import { burstyWorkload } from './tasks/bursty-workload.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { parseServeTask } from './tasks/serve-task-schema.ts';
import { staticWorkload } from './tasks/static-workload.ts';

/** The three tasks, easiest first. */
export const SERVE_TASKS: Readonly<Record<TaskId, ServeTask>> = {
  static_workload: staticWorkload,
  bursty_workload: burstyWorkload,
  adversarial_multitenant: adversarialMultitenant,
};

/** These, and those of people who play their own. */
export const serveTasks = new Tasks<ServeTask, TaskId>(SERVE_TASKS, {
  parse: parseServeTask,
  mark: 'phases',
});

/** @see TaskRegistry.add */
export const addServeTask = (task: ServeTask): void => serveTasks.add(task);
/** @see TaskRegistry.isOwn */
export const isOwnTask = (id: string): boolean => serveTasks.isOwn(id);
/** @see TaskRegistry.find */
export const findServeTask = (id: string): ServeTask | undefined => serveTasks.find(id);
/** @see TaskRegistry.ids */
export const serveTaskIds = (): string[] => serveTasks.ids();
