import type { TaskId } from '../schema.ts';
import { adversarialMultitenant } from './adversarial-multitenant.ts';
import { burstyWorkload } from './bursty-workload.ts';
import type { ServeTask } from './serve-task.ts';
import { staticWorkload } from './static-workload.ts';

/** The three tasks, easiest first. */
export const SERVE_TASKS: Readonly<Record<TaskId, ServeTask>> = {
  static_workload: staticWorkload,
  bursty_workload: burstyWorkload,
  adversarial_multitenant: adversarialMultitenant,
};
