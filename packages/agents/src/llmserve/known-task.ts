import { findServeTask, type ServeTask, serveTaskIds } from '@servegym/environments';

/** The task of this id. Throws a `RangeError` that names the tasks when it is none. */
export function knownTask(taskId: string | number): ServeTask {
  const task = findServeTask(String(taskId));
  if (task !== undefined) return task;
  throw new RangeError(
    `Expected a task named one of ${serveTaskIds().join(', ')}, got ${JSON.stringify(taskId)}`,
  );
}
