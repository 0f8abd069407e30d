import { type LearningTask, serveLearningTask } from '@servegym/agents';
import { TASK_IDS, type TaskId } from '@servegym/environments';

/** The environments that networks can be trained on. */
export const LEARNING_TASKS: Readonly<
  Record<string, { readonly taskIds: readonly string[]; readonly find: (taskId: string) => LearningTask }>
> = {
  llmserve: { taskIds: TASK_IDS, find: (taskId) => serveLearningTask(taskId as TaskId) },
};
