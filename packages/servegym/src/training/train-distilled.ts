import {
  type ActorWeights,
  type DemonstrationRequest,
  distill,
  encodeActor,
  SERVE_FINE_TUNING,
  serveLearningTask,
} from '@servegym/agents';
import type { JobEngine, Json } from '@servegym/agents/jobs';
import { openJobs } from '../jobs/open-jobs.ts';
import type { DemonstrationInput, DemonstrationOutput } from './demonstrate-job.ts';
import { trainNetwork } from './train-network.ts';
import type { TrainingPlan, TrainingReport } from './training-plan.ts';

/** Whom to learn from, and how many episodes. */
export interface Lessons {
  /** A policy of the catalogue. */
  readonly teacher: string;
  readonly episodes: number;
}

/** Clones a policy of the catalogue into a network, which then goes on learning with PPO. */
export async function trainDistilled(
  { task: taskId, ...plan }: TrainingPlan,
  lessons: Lessons,
): Promise<TrainingReport> {
  const actor = await cloneTeacher({ ...plan, task: taskId }, lessons);
  const learningTask = serveLearningTask(taskId, SERVE_FINE_TUNING);
  return trainNetwork({ ...plan, learningTask, algorithm: 'distill' }, { actor });
}

async function cloneTeacher(
  { task: taskId, seed, threads, signal }: TrainingPlan,
  { teacher, episodes }: Lessons,
): Promise<ActorWeights> {
  const jobs = await openJobs({ threads });
  try {
    return await distill({
      ...{ taskId, seed, episodes, signal },
      demonstrate: (request) => haveDemonstrated(jobs, teacher, request),
      onRound({ round, meanReturn, loss }) {
        const player = round === 1 ? teacher : 'the student';
        console.error(
          `lesson ${round}: ${player} earns ${meanReturn.toFixed(1)}, the student errs by ${loss.toFixed(3)} nats`,
        );
      },
    });
  } finally {
    await jobs.close();
  }
}

async function haveDemonstrated(
  jobs: JobEngine,
  teacher: string,
  { taskId, traces, student }: DemonstrationRequest,
) {
  const name = student === undefined ? null : await jobs.share(encodeActor(student, {}));
  const outputs = await jobs.run(
    traces.map((trace) => {
      const input: DemonstrationInput = { taskId, trace, teacher, student: name };
      return {
        kind: 'demonstrate',
        input: input as unknown as Json,
        ...(name !== null && { shared: [name] }),
      };
    }),
  );
  return (outputs as unknown as DemonstrationOutput[]).map((output) => ({
    observations: Float32Array.from(output.observations),
    binsInForce: Int32Array.from(output.binsInForce),
    actions: Int32Array.from(output.actions),
    return: output.return,
  }));
}
