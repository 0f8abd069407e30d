import { gymLearningTask, type LearningTask, type OwnTable, serveLearningTask } from '@servegym/agents';
import { GYM_TASK_IDS, type GymTaskId, TASK_IDS } from '@servegym/environments';

/** What of an environment networks can be trained on. */
export interface LearnableEnvironment {
  /** Of those that come with it. */
  readonly taskIds: readonly string[];
  /** @param table of one's own, for `inferencegym` */
  find(taskId: string, table?: OwnTable): LearningTask;
}

/** The environments that networks can be trained on. */
export const LEARNING_TASKS: Readonly<Record<string, LearnableEnvironment>> = {
  llmserve: { taskIds: TASK_IDS, find: (taskId) => serveLearningTask(taskId) },
  inferencegym: {
    taskIds: GYM_TASK_IDS.map(String),
    find: (taskId, table) => gymLearningTask(Number(taskId) as GymTaskId, table),
  },
};
