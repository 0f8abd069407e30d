import { createHash } from 'node:crypto';
import { llmserve, type ServeTask } from '@servegym/environments';
import { AgentError } from '../error-catalogue.ts';

/** The task of this id. @throws AgentError `UNKNOWN_TASK` */
export function knownTask(taskId: string | number): ServeTask {
  const task = llmserve.tasks.find(String(taskId));
  if (task !== undefined) return task;
  throw new AgentError('UNKNOWN_TASK', { known: llmserve.tasks.ids(), got: taskId });
}

/** The task that a policy was trained on, as its file names it. */
export interface TrainedTask {
  readonly task: string;
  /** For a task of one's own, stands for all that is played; the version stands for that of the others. */
  readonly task_digest?: string;
}

/** Entries for a task in the file of a policy. @throws AgentError `UNKNOWN_TASK` */
export function trainedTask(taskId: string): TrainedTask {
  const task = knownTask(taskId);
  return llmserve.tasks.isOwn(taskId) ? { task: taskId, task_digest: taskDigest(task) } : { task: taskId };
}

/**
 * The task that the file of a policy names.
 * @throws AgentError `POLICY_TASK` when this process does not know it, or knows another one of this id
 */
export function findTrainedTask(trained: { readonly [Field in keyof TrainedTask]: unknown }): ServeTask {
  const task = llmserve.tasks.find(String(trained.task));
  if (task === undefined) {
    throw new AgentError('POLICY_TASK', {
      expected: `one of ${llmserve.tasks.ids().join(', ')}`,
      got: `one for ${trained.task}`,
      remedy: 'if that is a task of your own, give its file as well',
    });
  }
  if (llmserve.tasks.isOwn(task.id) && trained.task_digest !== taskDigest(task)) {
    throw new AgentError('POLICY_TASK', {
      expected: `the task ${task.id} with the digest ${taskDigest(task)}`,
      got: `one for ${trained.task_digest ?? 'none'}`,
      remedy:
        'the file of the task is not what the policy was trained on. Give that file, or train anew on this one',
    });
  }
  return task;
}

/** Of what is played: what only people read, and how hard the task is said to be, may change. */
function taskDigest(task: ServeTask): string {
  const { name: _, description: __, difficulty: ___, ...played } = task;
  return createHash('sha256').update(JSON.stringify(played)).digest('hex').slice(0, 16);
}
