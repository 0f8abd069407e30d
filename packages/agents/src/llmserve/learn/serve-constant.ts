import { llmserve, type ServeAction, serveActionSchema } from '@servegym/environments';
import { findTrainedTask, trainedTask } from '../trained-task.ts';
import { requireThisEnvironment, TrainedPolicyError } from './trained-policy-error.ts';

/** A configuration that has been tuned for a task of `llmserve`. */
export interface ServeConstant {
  readonly taskId: string;
  readonly action: ServeAction;
  /** How it came to be, for people. */
  readonly training: Readonly<Record<string, string | number>>;
}

/** A JSON file that says which environment, version and task the configuration is for. */
export function encodeServeConstant({ taskId, action, training }: ServeConstant): string {
  const { id: environment, version } = llmserve;
  return `${JSON.stringify({ environment, version, ...trainedTask(taskId), action, training }, null, 2)}\n`;
}

/** What `encodeServeConstant` wrote, parsed as JSON. @throws TrainedPolicyError */
export function readServeConstant(json: Readonly<Record<string, unknown>>): ServeConstant {
  const { environment, version, task, task_digest, action, training } = json;
  requireThisEnvironment(environment, version);
  const { id: taskId } = findTrainedTask({ task, task_digest });
  const checked = serveActionSchema.safeParse(action);
  if (!checked.success) {
    throw new TrainedPolicyError(`Expected an action, got ${JSON.stringify({ action }).slice(0, 200)}`);
  }
  return { taskId, action: checked.data, training: training as ServeConstant['training'] };
}
