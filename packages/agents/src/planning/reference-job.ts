import {
  type EpisodeRequests,
  llmserve,
  type SeedReturns,
  type ServeAction,
  ServeEpisode,
  type ServeTask,
} from '@servegym/environments';
import type { JobContext, Json } from '@servegym/jobs';
import { MpcPolicy } from '../policies/planner-policies.ts';
import { planClairvoyant } from './plan-clairvoyant.ts';

/** One seed of a task to be played. */
export interface ReferenceInput {
  readonly taskId: string;
  readonly seed: number;
  /** Configurations that planners may change to, the best constant first. */
  readonly configurations: readonly ServeAction[];
  /** The receding-horizon planner plays too. */
  readonly planner: boolean;
  /** The other returns, where they are known. */
  readonly known?: SeedReturns;
}

/** The job `reference-returns`: plays one seed of a task with the default, the best constant and the planners. */
export function runJob(input: Json, { report }: JobContext): Json {
  const { taskId, seed, configurations, planner, known } = input as unknown as ReferenceInput;
  const task = llmserve.tasks.find(taskId);
  const [constant] = configurations;
  if (task === undefined || constant === undefined) throw new RangeError(`Expected a task, got ${taskId}`);
  const requests = llmserve.drawRequests(task, seed);
  const returns: SeedReturns = known ?? {
    default: llmserve.anchors.constantReturn(task, seed, requests, task.defaultAction),
    constant: llmserve.anchors.constantReturn(task, seed, requests, constant),
    clairvoyant: planClairvoyant(task, seed, { requests, configurations }).return,
  };
  if (!planner) return { ...returns };
  return { ...returns, planner: plannerReturn(task, seed, requests, configurations, report) };
}

function plannerReturn(
  task: ServeTask,
  seed: number,
  requests: EpisodeRequests,
  configurations: readonly ServeAction[],
  report: (share: number) => void,
): number {
  const policy = new MpcPolicy(configurations);
  policy.reset({ taskId: task.id, seed });
  const episode = new ServeEpisode(task, seed, { requests });
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    episode.step(policy.act({ observation: episode.observation(), reward: null, previousAction, stepIndex }));
    report(episode.window / (task.windows + 1));
  }
  return episode.totals.reward;
}
