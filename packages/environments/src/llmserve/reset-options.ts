import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { TASK_IDS, type TaskId } from './schema.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { SERVE_TASKS } from './tasks/serve-tasks.ts';

/** The task of `task_id`; `static_workload` when it is absent. @throws EnvironmentError `UNKNOWN_TASK` */
export function chooseTask(options: ResetOptions): ServeTask {
  const id = options.task_id ?? 'static_workload';
  const task = (TASK_IDS as readonly unknown[]).includes(id) ? SERVE_TASKS[id as TaskId] : undefined;
  if (task === undefined) {
    throw new EnvironmentError(
      'UNKNOWN_TASK',
      `Expected \`task_id\` to be one of ${TASK_IDS.join(', ')}, got \`${String(id)}\``,
    );
  }
  return task;
}

/**
 * The seed of the traffic; 0 when it is absent, which happens in process only: servers draw one.
 * @throws EnvironmentError `INVALID_SEED`
 */
export function readSeed(options: ResetOptions): number {
  const seed = options.seed ?? 0;
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new EnvironmentError(
      'INVALID_SEED',
      `Expected \`seed\` to be a whole number from 0 to 2^53 - 1, got \`${String(seed)}\``,
    );
  }
  return seed;
}
