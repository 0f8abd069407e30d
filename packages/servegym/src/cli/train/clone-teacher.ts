import {
  type ActorWeights,
  type DemonstratedEpisode,
  type DemonstrationRequest,
  distill,
  encodeActor,
} from '@servegym/agents';
import type { JobEngine, Json } from '@servegym/jobs';
import { shareTask } from '../jobs/job-task.ts';
import type { DemonstrationInput, DemonstrationOutput } from './demonstrate-job.ts';
import type { Lessons } from './training-plan.ts';

export interface CloningPlan extends Lessons {
  readonly taskId: string;
  readonly seed: number;
  /** What the rounds before have shown, of a run that stopped. */
  readonly shown?: readonly DemonstratedEpisode[];
  /** Ends after the round at hand. */
  readonly signal?: AbortSignal;
  /** Called after each round with all that has been shown so far. */
  readonly onShown?: (shown: readonly DemonstratedEpisode[]) => void;
  readonly onProgress: (line: string) => void;
}

/** Clones a policy of the catalogue into a network. */
export async function cloneTeacher(
  jobs: JobEngine,
  { teacher, onShown, onProgress, ...plan }: CloningPlan,
): Promise<ActorWeights> {
  return distill({
    ...plan,
    demonstrate: (request) => haveDemonstrated(jobs, teacher, request),
    onRound({ round, meanReturn, loss, shown }) {
      onShown?.(shown);
      const player = round === 1 ? teacher : 'the student';
      onProgress(
        `lesson ${round}: ${player} earns ${meanReturn.toFixed(1)}, the student errs by ${loss.toFixed(3)} nats`,
      );
    },
  });
}

async function haveDemonstrated(
  jobs: JobEngine,
  teacher: string,
  { taskId, traces, student }: DemonstrationRequest,
) {
  const name = student === undefined ? null : await jobs.share(encodeActor(student, {}));
  const ownTask = await shareTask(jobs, taskId);
  const shared = [name, ownTask].filter((each) => typeof each === 'string');
  const outputs = await jobs.run(
    traces.map((trace) => {
      const input: DemonstrationInput = {
        ...{ taskId, trace, teacher, student: name },
        ...(ownTask !== undefined && { ownTask }),
      };
      return { kind: 'demonstrate', input: input as unknown as Json, shared };
    }),
  );
  return (outputs as unknown as DemonstrationOutput[]).map((output) => ({
    observations: Float32Array.from(output.observations),
    binsInForce: Int32Array.from(output.binsInForce),
    actions: Int32Array.from(output.actions),
    return: output.return,
  }));
}
