import type { ServeAction } from '../schema.ts';
import type { ServeTask } from '../tasks/serve-task.ts';
import { SERVE_TASKS } from '../tasks/serve-tasks.ts';
import recorded from './reference-returns.json' with { type: 'json' };
import { taskFingerprint } from './task-fingerprint.ts';

/** What a task's traffic was found to be worth, made by `servegym oracle`. */
export interface TaskReference {
  /** Under which these were computed; see `taskFingerprint`. */
  readonly fingerprint: string;
  /** The configuration that earned most on the training traffic when it never changed. */
  readonly constant: ServeAction;
  /** The one that earned most when all traffic was of one phase, by name of the phase. */
  readonly phases: Readonly<Record<string, ServeAction>>;
  readonly seeds: Readonly<Record<string, SeedReturns>>;
}

/** Returns on the traffic of one seed. */
export interface SeedReturns {
  readonly default: number;
  readonly constant: number;
  /** Of the receding-horizon planner, which does not know the traffic to come; absent where it was not played. */
  readonly planner?: number;
  /** Of the planner that does. */
  readonly clairvoyant: number;
}

/** File of the records; `maintenance/rebuild-references.ts` writes it. */
export const REFERENCE_RETURNS_URL = new URL('./reference-returns.json', import.meta.url);

const RECORDED = recorded as unknown as Readonly<Record<string, TaskReference>>;

/** What is recorded of the task with this id, whether or not it still holds; `undefined` for a task of one's own. */
export function recordedReference(taskId: string): TaskReference | undefined {
  return Object.hasOwn(RECORDED, taskId) ? RECORDED[taskId] : undefined;
}

/** Whether a task is one of those that come with ServeGym, and has not been changed for a shift or other traffic. */
export function isRecordedTask(task: ServeTask): boolean {
  return Object.hasOwn(SERVE_TASKS, task.id) && SERVE_TASKS[task.id as never] === task;
}

/** Returns of this very task on the traffic of `seed`; `undefined` when none are recorded, or they no longer hold. */
export function recordedReturns(task: ServeTask, seed: number): SeedReturns | undefined {
  const reference = recordedReference(task.id);
  if (reference === undefined || !isRecordedTask(task)) return undefined;
  const returns = Object.hasOwn(reference.seeds, seed) ? reference.seeds[seed] : undefined;
  return returns !== undefined && reference.fingerprint === taskFingerprint(task) ? returns : undefined;
}

/** Configurations that are worth trying in a task, the best constant first; the default alone where nothing is recorded. */
export function referenceConfigurations(task: ServeTask): ServeAction[] {
  const reference = recordedReference(task.id);
  if (reference === undefined) return [task.defaultAction];
  return [reference.constant, ...Object.values(reference.phases), task.defaultAction];
}
