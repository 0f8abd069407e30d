import { llmserve, SEED_SPLITS, type SeedSplit, type ServeScenario } from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import {
  type Evaluation,
  evaluationOf,
  type PlayedTask,
  playTask,
} from './evaluate-policy.ts';
import { playableServe, policyUnderScenario } from './playable-serve.ts';
import {
  addSharedTask,
  addSharedTrace,
  findSharedPolicy,
  type PolicySource,
  type SharedPolicy,
  sharedOfPolicy,
  sharePolicy,
  shareTask,
  shareTrace,
} from './shared-inputs.ts';

/** In the place of a split: the test seeds under each shift. */
export const SHIFTED = 'shifted';

/** Source of the seeds of an evaluation. */
export type EvaluationSplit = SeedSplit | typeof SHIFTED;
export const EVALUATION_SPLITS = [...Object.keys(SEED_SPLITS), SHIFTED] as const;

/** Episodes to play, and the policy that plays them. */
export interface ServeEvaluationPlan {
  readonly agent: PolicySource;
  /** Name of the policy in the report. */
  readonly policyName: string;
  /** Tasks that this process knows. */
  readonly taskIds: readonly string[];
  readonly split: EvaluationSplit;
  /** For each task. */
  readonly episodes: number;
  /** Traffic, trace and shift. */
  readonly scenario: ServeScenario;
  /** Called with the share that is done; under shifts, once more for each of them. */
  readonly onProgress?: (share: number) => void;
}

/** Plays a policy on `llmserve`, an episode a job. */
export async function evaluateServe(jobs: JobEngine, plan: ServeEvaluationPlan): Promise<Evaluation> {
  const { taskIds, split, episodes, scenario, onProgress } = plan;
  const { first } = SEED_SPLITS[split === SHIFTED ? 'test' : split];
  const agent = await sharePolicy(jobs, plan.agent);
  const trace = await shareTrace(jobs, scenario);
  const tasks = await Promise.all(
    taskIds.map(async (taskId) => ({ taskId, ownTask: await shareTask(jobs, taskId) })),
  );
  const list = tasks.flatMap(({ taskId, ownTask }) => {
    const shared = [...sharedOfPolicy(agent), trace, ownTask].filter((name) => name !== undefined);
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
  for (const shift of llmserve.shifts) {
    shifted.set(shift, await evaluateServe(jobs, { ...plan, scenario: { ...plan.scenario, shift } }));
  }
  return shifted;
}

/** Episodes of one task for a thread or another machine. */
export interface PlayEpisodesInput {
  readonly agent: SharedPolicy;
  readonly taskId: string;
  readonly seeds: readonly number[];
  readonly scenario: ServeScenario;
  /** A trace of one's own that the scenario names: the name of its shared bytes. */
  readonly trace?: string;
  /** A task of one's own that `taskId` names: the name of its shared bytes. */
  readonly ownTask?: string;
}

/** The job `play-episodes`: plays and grades a policy on `llmserve`. Answers a `PlayedTask`. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { agent, taskId, seeds, scenario, trace, ownTask } = input as unknown as PlayEpisodesInput;
  addSharedTrace(scenario, trace, context);
  addSharedTask(ownTask, context);
  const policy = findSharedPolicy(agent, context);
  const environment = playableServe(scenario);
  const everyTenth = reportTenths(seeds.length * llmserve.tasks.find(taskId)!.windows, context);
  const played: PlayedTask = await playTask(
    {
      ...environment,
      meter: (task) => {
        const meter = environment.meter!(task);
        const see: typeof meter.see = (window) => {
          meter.see(window);
          everyTenth();
        };
        return { see, figures: meter.figures };
      },
    },
    policyUnderScenario(policy, scenario),
    taskId,
    seeds,
  );
  return played as unknown as Json;
}

/** Reports each tenth of so many windows; to be called after each of them. */
function reportTenths(windows: number, context: JobContext): () => void {
  let played = 0;
  let tenths = 0;
  return () => {
    played += 1;
    const now = Math.floor((10 * played) / windows);
    if (now === tenths) return;
    tenths = now;
    context.report(played / windows);
  };
}
