import type { StoppedRun } from './checkpoint-file.ts';
import { trainDistilled } from './train-distilled.ts';
import { trainNetwork } from './train-network.ts';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';

/** Goes on with a run that stopped, as if it had not. */
export async function resumeTraining(
  stopped: StoppedRun,
  how: Pick<TrainingPlan, 'threads' | 'folder' | 'signal'>,
): Promise<TrainingReport> {
  const { learningTask, algorithm, steps, seed } = stopped;
  const plan = { steps, seed, ...how };
  if ('checkpoint' in stopped) {
    return trainNetwork({ ...plan, learningTask, algorithm }, { checkpoint: stopped.checkpoint });
  }
  return trainDistilled({ ...plan, task: String(learningTask.taskId) }, stopped.lessons, stopped.shown);
}
