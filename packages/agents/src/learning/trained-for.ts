import { createHash } from 'node:crypto';
import { EnvironmentError } from '@servegym/openenv/definition';

/** Part of a registered environment by which the policies that are trained on it are told from others. */
export interface TrainedOn<Task> {
  readonly id: string;
  readonly version: string;
  readonly tasks: {
    find(id: string): Task | undefined;
    ids(): readonly (string | number)[];
    isOwn(id: string | number): boolean;
  };
}

/** The task of this id. @throws EnvironmentError `UNKNOWN_TASK` */
export function knownTask<Task>({ tasks }: Pick<TrainedOn<Task>, 'tasks'>, taskId: string | number): Task {
  const task = tasks.find(String(taskId));
  if (task !== undefined) return task;
  const got = JSON.stringify(taskId);
  throw new EnvironmentError(
    'UNKNOWN_TASK',
    `Expected a task named one of ${tasks.ids().join(', ')}, got ${got}`,
  );
}

/** Entries of the file of a policy that say what it is for. */
export interface TrainedFor {
  readonly environment: string;
  readonly version: string;
  readonly task: string;
  /** For a task of one's own, stands for all that is played; the version stands for that of the others. */
  readonly task_digest?: string;
}

/** Entries for a task in the file of a policy. @throws EnvironmentError `UNKNOWN_TASK` */
export function trainedFor<Task extends object>(
  environment: TrainedOn<Task>,
  taskId: string | number,
): TrainedFor {
  const { id, version, tasks } = environment;
  const task = knownTask(environment, taskId);
  return {
    environment: id,
    version,
    task: String(taskId),
    ...(tasks.isOwn(taskId) && { task_digest: taskDigest(task) }),
  };
}

/**
 * The task that the file of a policy names.
 * @throws EnvironmentError `POLICY_MISMATCH` when the policy is for another environment or version, `POLICY_TASK` when this
 *   process does not know the task, or knows another one of this id
 */
export function findTrainedTask<Task extends { readonly id: string | number }>(
  { id, version, tasks }: TrainedOn<Task>,
  trained: Readonly<Record<string, unknown>>,
): Task {
  requireSame('environment', id, trained.environment);
  requireSame(`version of ${id}`, version, trained.version);
  const task = tasks.find(String(trained.task));
  if (task === undefined) {
    throw new EnvironmentError(
      'POLICY_TASK',
      `Expected a policy for one of ${tasks.ids().join(', ')}, got one for ${trained.task}: if that is a task of your own, give its file as well`,
    );
  }
  if (tasks.isOwn(task.id) && trained.task_digest !== taskDigest(task)) {
    throw new EnvironmentError(
      'POLICY_TASK',
      `Expected a policy for the task ${task.id} with the digest ${taskDigest(task)}, got one for ${trained.task_digest ?? 'none'}: the file of the task is not what the policy was trained on. Give that file, or train anew on this one`,
    );
  }
  return task;
}

/** Of what is played: what only people read, and how hard the task is said to be, may change. */
function taskDigest(task: object): string {
  const { name: _, description: __, difficulty: ___, ...played } = task as Readonly<Record<string, unknown>>;
  return createHash('sha256').update(JSON.stringify(played)).digest('hex').slice(0, 16);
}

/** @throws EnvironmentError `POLICY_MISMATCH` when `got` is not `expected` */
export function requireSame(what: string, expected: string, got: unknown): void {
  if (got === expected) return;
  throw new EnvironmentError(
    'POLICY_MISMATCH',
    `Expected a policy for the ${what} ${expected}, got ${got}: train it anew`,
  );
}

/** @throws EnvironmentError `OTHER_TASK` when a policy that was trained for one task is to play another */
export function requireTask(trained: string | number, asked: string | number): void {
  if (String(asked) !== String(trained)) throw otherTask(trained, asked);
}

export function otherTask(trained: string | number, asked: string | number): EnvironmentError {
  return new EnvironmentError(
    'OTHER_TASK',
    `Expected the task ${trained} that the policy was trained for, got ${asked}`,
  );
}
