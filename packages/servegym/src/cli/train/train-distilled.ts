import { type DemonstratedEpisode, SERVE_FINE_TUNING, serveLearningTask } from '@servegym/agents';
import { openJobs } from '../jobs/open-jobs.ts';
import { writeCheckpoint } from './checkpoint-file.ts';
import { cloneTeacher } from './clone-teacher.ts';
import { trainNetwork } from './train-network.ts';
import { networkFiles, writeNetwork } from './trained-files.ts';
import type { Lessons, TrainingPlan, TrainingReport } from './training-plan.ts';

/**
 * Clones a policy of the catalogue into a network, which then goes on learning with PPO.
 * @param shown by the lessons of a run that stopped, which goes on after them
 */
export async function trainDistilled(
  { task: taskId, ...plan }: TrainingPlan,
  lessons: Lessons,
  shown: readonly DemonstratedEpisode[] = [],
): Promise<TrainingReport> {
  const { steps, seed, threads, queue, folder, signal } = plan;
  const run = {
    learningTask: serveLearningTask(taskId, SERVE_FINE_TUNING),
    algorithm: 'distill',
    seed,
  } as const;
  const files = networkFiles(folder);
  let given = shown.length;
  const jobs = await openJobs({ threads, queue });
  const actor = await cloneTeacher(jobs, {
    ...{ ...lessons, taskId, seed, signal, shown },
    onShown(all) {
      given = all.length;
      writeCheckpoint(files.checkpoint, { ...run, steps, lessons, shown: all });
    },
    onProgress: (line) => console.error(line),
  }).finally(() => jobs.close());
  if (given === lessons.episodes) return trainNetwork({ ...plan, ...run }, { actor });
  console.error(`stopped after ${given} of ${lessons.episodes} lessons; train --resume goes on`);
  writeNetwork(files, { ...run, weights: actor, steps: 0 });
  return { steps: 0, final_return: null, files };
}
