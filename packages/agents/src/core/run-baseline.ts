import type { Grade } from '@servegym/openenv/definition';
import { LlmClient, type LlmSettings } from './llm-client.ts';
import { LlmPolicy } from './llm-policy.ts';
import type { EnvironmentInstance, EpisodeReset, PlayableEnvironment } from './playable.ts';
import { type AsyncPolicy, type PlayedWindow, playEpisode } from './policy.ts';

/** Episodes of a baseline are played in this process, or at a server. */
export interface BaselineRuntime {
  readonly kind: 'in-process' | 'http';
  readonly instance: EnvironmentInstance<object, object>;
  /** The grade of the episode that was played last; `null` where the environment has no grader. */
  grade(record: { readonly reset: EpisodeReset; readonly actions: readonly object[] }): Promise<Grade | null>;
}

/** A model as the agent of a baseline. */
export interface BaselineModel extends LlmSettings {
  readonly history: number;
  /** Ask before every n-th step. Default 1, or as `maxCalls` says. */
  readonly decideEvery?: number;
  /** Most steps of a task before which the model is asked, spread over the episode. Default: no limit. */
  readonly maxCalls?: number;
  /** Time from the start after which the model is not asked any more, s. Default: no limit. */
  readonly timeBudgetSeconds?: number;
}

/** A baseline to play. */
interface BaselinePlan {
  readonly environment: PlayableEnvironment<object, object>;
  /** Tasks by id; `null` for an environment without tasks. */
  readonly taskIds: readonly (string | number | null)[];
  readonly seed: number;
  /** Who plays: a policy, by the name that it was asked for by, or a model. */
  readonly player: { readonly agent: string; readonly policy: AsyncPolicy<object, object> } | BaselineModel;
  /** Closed at the end. Default: in this process. */
  readonly runtime?: BaselineRuntime | undefined;
  /** Most steps of a task. Default: the whole episode, or 10 steps where it has no end. */
  readonly maxSteps?: number | undefined;
  readonly watcher?: BaselineWatcher | undefined;
}

/** Progress of a baseline. `label` is the task, or the environment where it has no tasks. */
export interface BaselineWatcher {
  started?(label: string | number): void;
  /** Called every second while the model is asked. */
  waiting?(label: string | number, step: number, seconds: number): void;
  /** `error`: why the model did not choose this action though it was asked. */
  stepped?(
    label: string | number,
    step: number,
    played: PlayedWindow<object, object> & { readonly error: string | null },
  ): void;
  graded?(task: BaselineTask): void;
}

/** One graded episode. */
export type BaselineTask = Awaited<ReturnType<typeof playTask>>;

/** A baseline that was played. */
export type BaselineResult = Awaited<ReturnType<typeof runBaseline>>;

const ENDLESS_STEPS = 10;

/**
 * Plays and grades one episode of each task.
 * @throws EnvironmentError when the model cannot be asked
 */
export async function runBaseline(plan: BaselinePlan) {
  const { environment, player, seed, watcher } = plan;
  const runtime = plan.runtime ?? inProcess(environment);
  const llm = 'model' in player ? player : null;
  const client = llm && new LlmClient(llm);
  const startedMs = performance.now();
  const tasks: BaselineTask[] = [];
  try {
    for (const taskId of plan.taskIds) {
      watcher?.started?.(taskId ?? environment.id);
      const policy =
        'model' in player ? modelPolicy(client!, taskId, plan, player, startedMs) : player.policy;
      const task = await playTask(runtime, policy, taskId, plan);
      tasks.push(task);
      watcher?.graded?.(task);
    }
  } finally {
    await runtime.instance.close?.();
  }
  return {
    mode: llm === null ? ('deterministic' as const) : ('openai' as const),
    runtime: runtime.kind,
    environment: environment.id,
    version: environment.version,
    agent: 'model' in player ? 'llm' : player.agent,
    seed,
    model: llm?.model ?? null,
    api_base_url: llm?.baseUrl ?? null,
    tasks,
    mean_score: tasks.reduce((sum, { score }) => sum + score, 0) / tasks.length,
    usage: client && { ...client.usage, cost_usd: client.costUsd },
  };
}

/** Steps at which the model gave a valid action. */
export function validAnswers({ answers }: BaselineTask): number {
  return answers === undefined ? 0 : answers.asked - answers.keptLast;
}

function modelPolicy(
  client: LlmClient,
  taskId: string | number | null,
  { environment, maxSteps = Number.POSITIVE_INFINITY }: BaselinePlan,
  model: BaselineModel,
  startedMs: number,
): LlmPolicy<object, object> {
  const {
    history,
    maxCalls = Number.POSITIVE_INFINITY,
    timeBudgetSeconds = Number.POSITIVE_INFINITY,
  } = model;
  const task = environment.tasks?.find(({ id }) => id === taskId);
  const length = Number(task?.windows ?? task?.episode_length ?? ENDLESS_STEPS);
  const { decideEvery = Math.max(1, Math.ceil(Math.min(maxSteps, length) / maxCalls)) } = model;
  const mayAsk = () => performance.now() - startedMs < 1000 * timeBudgetSeconds;
  return new LlmPolicy(environment, client, { history, decideEvery, mayAsk });
}

async function playTask(
  { instance, grade }: BaselineRuntime,
  policy: AsyncPolicy<object, object>,
  taskId: string | number | null,
  { environment, seed, watcher, maxSteps }: BaselinePlan,
) {
  const startedMs = performance.now();
  const { id, tasks } = environment;
  const label = taskId ?? id;
  const reset = { ...(taskId !== null && { task_id: taskId }), seed };
  const rewards: number[] = [];
  let isDone = tasks === undefined;
  const { actions, return: total } = await playEpisode(
    instance,
    withNotices(policy, (step, seconds) => watcher?.waiting?.(label, step, seconds)),
    {
      ...{ taskId: label, seed, reset, initialAction: environment.initialAction(label) },
      maxSteps: maxSteps ?? (tasks === undefined ? ENDLESS_STEPS : Number.POSITIVE_INFINITY),
    },
    (window) => {
      rewards.push(window.reward);
      isDone ||= window.done;
      const error = policy instanceof LlmPolicy ? policy.keptBecause : null;
      watcher?.stepped?.(label, rewards.length, { ...window, error });
    },
  );
  const { score, feedback, breakdown } = (await grade({ reset, actions })) ?? {
    score: total / Math.max(1, rewards.length),
    feedback: 'Mean reward: the environment has no grader.',
    breakdown: {},
  };
  return {
    task_id: taskId,
    /** The grade; the mean reward where the environment has no grader. */
    score,
    /** The episode came to its end, or has none. */
    complete: isDone,
    return: total,
    steps: actions.length,
    wall_s: (performance.now() - startedMs) / 1000,
    feedback,
    breakdown,
    rewards,
    actions,
    /** Counts of a model's answers. */
    ...(policy instanceof LlmPolicy && { answers: policy.answers }),
  };
}

/** The policy, with a notice every second while it chooses. Steps count from 1. */
function withNotices(
  policy: AsyncPolicy<object, object>,
  notice: (step: number, seconds: number) => void,
): AsyncPolicy<object, object> {
  return {
    name: policy.name,
    reset: (episode) => policy.reset(episode),
    async act(step) {
      const askedMs = performance.now();
      const seconds = () => Math.round((performance.now() - askedMs) / 1000);
      const timer = setInterval(() => notice(step.stepIndex + 1, seconds()), 1000);
      try {
        return await policy.act(step);
      } finally {
        clearInterval(timer);
      }
    },
  };
}

function inProcess(environment: BaselinePlan['environment']): BaselineRuntime {
  return {
    kind: 'in-process',
    instance: environment.create(),
    grade: async (record) => (await environment.grade?.(record)) ?? null,
  };
}
