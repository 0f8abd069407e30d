import { type Evaluation, evaluationOf, type PlayedTask } from '@servegym/agents';
import { SEED_SPLITS, type SeedSplit, type ServeScenario, SHIFTS } from '@servegym/environments';
import type { JobEngine, Json } from '@servegym/jobs';
import { shareAgent, sharedOfAgent } from '../jobs/job-agent.ts';
import { shareTask } from '../jobs/job-task.ts';
import { shareTrace } from '../jobs/job-trace.ts';
import type { PlayEpisodesInput } from './play-episodes-job.ts';

/** In the place of a split: the test seeds under each shift. */
export const SHIFTED = 'shifted';

/** Where the seeds of an evaluation come from. */
export type EvaluationSplit = SeedSplit | typeof SHIFTED;
export const EVALUATION_SPLITS = [...Object.keys(SEED_SPLITS), SHIFTED] as const;

/** What to play, and with whom. */
export interface ServeEvaluationPlan {
  /** Name of a policy, or a file that `servegym train` wrote. */
  readonly agent: string;
  /** What the policy calls itself. */
  readonly policyName: string;
  /** Of tasks that this process knows. */
  readonly taskIds: readonly string[];
  readonly split: EvaluationSplit;
  /** For each task. */
  readonly episodes: number;
  /** Traffic, trace and shift. */
  readonly scenario: ServeScenario;
  /** Told of the share that is done; under shifts, of each of them. */
  readonly onProgress?: (share: number) => void;
}

/** Plays a policy on `llmserve`, an episode a job. */
export async function evaluateServe(jobs: JobEngine, plan: ServeEvaluationPlan): Promise<Evaluation> {
  const { taskIds, split, episodes, scenario, onProgress } = plan;
  const { first } = SEED_SPLITS[split === SHIFTED ? 'test' : split];
  const agent = await shareAgent(jobs, plan.agent);
  const trace = await shareTrace(jobs, scenario);
  const tasks = await Promise.all(
    taskIds.map(async (taskId) => ({ taskId, ownTask: await shareTask(jobs, taskId) })),
  );
  const list = tasks.flatMap(({ taskId, ownTask }) => {
    const shared = [...sharedOfAgent(agent), trace, ownTask].filter((name) => name !== undefined);
    return Array.from({ length: episodes }, (_, i) => {
      const input: PlayEpisodesInput = {
        ...{ agent, taskId, scenario, seeds: [first + i] },
        ...(trace !== undefined && { trace }),
        ...(ownTask !== undefined && { ownTask }),
      };
      return { kind: 'play-episodes', input: input as unknown as Json, shared };
    });
  });
  const results = await jobs.run(list, { onProgress: ({ share }) => onProgress?.(share) });
  const played = results as unknown as PlayedTask[];
  return evaluationOf(
    plan.policyName,
    taskIds.map((taskId, t): PlayedTask => {
      const own = played.slice(t * episodes, (t + 1) * episodes);
      return {
        taskId,
        episodes: own.flatMap((each) => each.episodes),
        wallSeconds: own.reduce((sum, { wallSeconds }) => sum + wallSeconds, 0),
      };
    }),
  );
}

/** Plays a policy on `llmserve` under each shift. */
export async function evaluateShifted(
  jobs: JobEngine,
  plan: ServeEvaluationPlan,
): Promise<ReadonlyMap<string, Evaluation>> {
  const shifted = new Map<string, Evaluation>();
  for (const shift of SHIFTS) {
    shifted.set(shift, await evaluateServe(jobs, { ...plan, scenario: { ...plan.scenario, shift } }));
  }
  return shifted;
}
