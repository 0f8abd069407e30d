import { findServeTask, type ServeAction, serveTaskIds } from '@servegym/environments';

/** The configuration that `reset` applies in a task. Throws a `RangeError` that names the tasks when it is none. */
export function defaultActionOf(taskId: string | number): ServeAction {
  const task = findServeTask(String(taskId));
  if (task !== undefined) return task.defaultAction;
  throw new RangeError(
    `Expected a task named one of ${serveTaskIds().join(', ')}, got ${JSON.stringify(taskId)}`,
  );
}
