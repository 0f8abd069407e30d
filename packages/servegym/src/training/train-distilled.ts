import { SERVE_FINE_TUNING, serveLearningTask } from '@servegym/agents';
import { openJobs } from '../jobs/open-jobs.ts';
import { cloneTeacher } from './clone-teacher.ts';
import { trainNetwork } from './train-network.ts';
import type { Lessons, TrainingPlan, TrainingReport } from './training-plan.ts';

/** Clones a policy of the catalogue into a network, which then goes on learning with PPO. */
export async function trainDistilled(
  { task: taskId, ...plan }: TrainingPlan,
  lessons: Lessons,
): Promise<TrainingReport> {
  const { seed, threads, queue, signal } = plan;
  const jobs = await openJobs({ threads, queue });
  const onProgress = (line: string) => console.error(line);
  const actor = await cloneTeacher(jobs, {
    ...{ ...lessons, taskId, seed, signal, onProgress },
  }).finally(() => jobs.close());
  const learningTask = serveLearningTask(taskId, SERVE_FINE_TUNING);
  return trainNetwork({ ...plan, learningTask, algorithm: 'distill' }, { actor });
}
