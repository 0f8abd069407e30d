import { SERVE_TASKS, type ServeAction, type TaskId } from '@servegym/environments';

/** The configuration that `reset` applies in a task. Throws a `RangeError` that names the tasks when it is none. */
export function defaultActionOf(taskId: string | number): ServeAction {
  if (!Object.hasOwn(SERVE_TASKS, taskId)) {
    const known = Object.keys(SERVE_TASKS).join(', ');
    throw new RangeError(`Expected a task named one of ${known}, got ${JSON.stringify(taskId)}`);
  }
  return SERVE_TASKS[taskId as TaskId].defaultAction;
}
