import { type Evaluation, evaluationOf, type PlayedTask } from '@servegym/agents';
import type { JobEngine, Json } from '@servegym/agents/jobs';
import { SEED_SPLITS, SHIFTS } from '@servegym/environments';
import { shareAgent, sharedOfAgent } from '../jobs/job-agent.ts';
import { shareTrace } from '../jobs/job-trace.ts';
import { type ServeEvaluationPlan, SHIFTED } from './evaluate-serve.ts';
import type { PlayEpisodesInput } from './play-episodes-job.ts';

/** What to play, and with whom. */
export interface JobEvaluationPlan extends ServeEvaluationPlan {
  /** Name of a policy, or a file that `servegym train` wrote. */
  readonly agent: string;
  /** What the policy calls itself. */
  readonly policyName: string;
  readonly onProgress?: (share: number) => void;
}

/** Plays a policy on `llmserve`, an episode a job. The same as `evaluateServe`, on as many threads or machines as there are. */
export async function evaluateWithJobs(jobs: JobEngine, plan: JobEvaluationPlan): Promise<Evaluation> {
  const { taskIds, split, episodes, scenario, onProgress } = plan;
  const { first } = SEED_SPLITS[split === SHIFTED ? 'test' : split];
  const agent = await shareAgent(jobs, plan.agent);
  const trace = await shareTrace(jobs, scenario);
  const shared = [...sharedOfAgent(agent), ...(trace === undefined ? [] : [trace])];
  const inputs = taskIds.flatMap((taskId) =>
    Array.from(
      { length: episodes },
      (_, i): PlayEpisodesInput => ({
        ...{ agent, taskId, scenario, seeds: [first + i] },
        ...(trace !== undefined && { trace }),
      }),
    ),
  );
  const results = await jobs.run(
    inputs.map((input) => ({ kind: 'play-episodes', input: input as unknown as Json, shared })),
    { onProgress: ({ share }) => onProgress?.(share) },
  );
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
export async function evaluateShiftedWithJobs(
  jobs: JobEngine,
  plan: JobEvaluationPlan,
): Promise<ReadonlyMap<string, Evaluation>> {
  const shifted = new Map<string, Evaluation>();
  for (const shift of SHIFTS) {
    shifted.set(shift, await evaluateWithJobs(jobs, { ...plan, scenario: { ...plan.scenario, shift } }));
  }
  return shifted;
}
