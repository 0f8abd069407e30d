import {
  createPolicy,
  demonstrate,
  distill,
  encodeRegimeTable,
  PpoPolicy,
  playRegimes,
  SERVE_FINE_TUNING,
  type ShippedName,
  searchRegimes,
  serveLearningTask,
  trainPpo,
} from '@servegym/agents';
import type { TaskId } from '@servegym/environments';

/** How policies are learned for the benchmark. */
export interface LearningBudget {
  /** Windows to learn from. */
  readonly steps: number;
  /** Whom `distilled` learns from, and how many episodes. */
  readonly teacher: string;
  readonly lessons: number;
}

/** A policy to be learned, on one thread. */
export interface LearningRun extends LearningBudget {
  readonly algorithm: ShippedName;
  readonly taskId: TaskId;
  readonly seed: number;
}

/** The file of a policy, as `servegym train` with the same algorithm and seed writes it. */
export async function learnPolicy(run: LearningRun): Promise<Uint8Array> {
  switch (run.algorithm) {
    case 'cem':
      return learnRegimes(run);
    case 'ppo':
      return learnNetwork(run);
    case 'distilled':
      return learnFromTeacher(run);
  }
}

async function learnRegimes({ taskId, steps, seed }: LearningRun): Promise<Uint8Array> {
  const play = async (trials: Parameters<typeof playRegimes>[0][]) => trials.map(playRegimes);
  const table = await searchRegimes({ taskId, steps, seed, play: (trials) => play([...trials]) });
  return new TextEncoder().encode(encodeRegimeTable(table));
}

async function learnNetwork({ taskId, steps, seed }: LearningRun): Promise<Uint8Array> {
  const task = serveLearningTask(taskId);
  const trained = await trainPpo({ ...task, steps, seed, threads: 1 });
  return task.encodeActor(trained.weights, { algorithm: 'ppo', steps: trained.steps, seed });
}

async function learnFromTeacher({ taskId, steps, seed, ...from }: LearningRun): Promise<Uint8Array> {
  const teacher = createPolicy(from.teacher);
  const actor = await distill({
    ...{ taskId, seed, episodes: from.lessons },
    demonstrate: async ({ traces, student }) => {
      const player = student && new PpoPolicy({ taskId, weights: student, training: {} });
      return traces.map((trace) => demonstrate(taskId, trace, teacher, player));
    },
  });
  const task = serveLearningTask(taskId, SERVE_FINE_TUNING);
  const trained = await trainPpo({ ...task, steps, seed, threads: 1, start: { actor } });
  return task.encodeActor(trained.weights, { algorithm: 'distill', steps: trained.steps, seed });
}
