import {
  type AsyncPolicy,
  type LlmAnswers,
  LlmClient,
  LlmPolicy,
  type LlmSettings,
  type LlmUsage,
} from '@servegym/agents';
import {
  type BaselineEnvironment,
  type BaselineEnvironmentId,
  baselineEnvironment,
} from './baseline-environments.ts';
import { type BaselineRuntime, httpRuntime, inProcessRuntime } from './baseline-runtime.ts';

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
export interface BaselinePlan {
  readonly environment: BaselineEnvironmentId;
  /** Tasks by id; `null` for an environment without tasks. */
  readonly taskIds: readonly (string | number | null)[];
  readonly seed: number;
  /** The server to play at. Default: in this process. */
  readonly url?: URL;
  /** The model that sets the knobs. Default: the environment's deterministic agent. */
  readonly llm?: BaselineModel;
  /** Another deterministic agent. */
  readonly agent?: string;
  /** Most steps of a task. Default: the whole episode, or 10 steps where it has no end. */
  readonly maxSteps?: number;
  readonly watcher?: BaselineWatcher;
}

/** Progress of a baseline. `label` is the task, or the environment where it has no tasks. */
export interface BaselineWatcher {
  started?(label: string | number): void;
  /** Called every second while the model is asked. */
  waiting?(label: string | number, step: number, seconds: number): void;
  stepped?(label: string | number, step: number, played: PlayedStep): void;
  graded?(task: BaselineTask): void;
}

export interface PlayedStep {
  readonly action: Record<string, unknown>;
  readonly reward: number;
  readonly done: boolean;
  /** Why the model did not choose this action though it was asked. */
  readonly error: string | null;
}

/** One graded episode. */
export interface BaselineTask {
  readonly task_id: string | number | null;
  /** The grade; the mean reward where the environment has no grader. */
  readonly score: number;
  /** Whether the episode came to its end; `true` where it has none. */
  readonly complete: boolean;
  /** Sum of the rewards. */
  readonly return: number;
  readonly steps: number;
  readonly wall_s: number;
  readonly feedback: string;
  readonly breakdown: Readonly<Record<string, unknown>>;
  readonly rewards: readonly number[];
  readonly actions: readonly Record<string, unknown>[];
  /** What became of the model's answers, for a model. */
  readonly answers?: LlmAnswers;
}

/** A baseline that was played. */
export interface BaselineResult {
  readonly mode: 'deterministic' | 'openai';
  readonly runtime: 'in-process' | 'http';
  readonly environment: string;
  readonly version: string;
  readonly agent: string;
  readonly seed: number;
  readonly model: string | null;
  readonly api_base_url: string | null;
  readonly tasks: readonly BaselineTask[];
  readonly mean_score: number;
  readonly usage: (LlmUsage & { readonly cost_usd: number | null }) | null;
}

/** Steps of an episode without an end. */
const ENDLESS_STEPS = 10;

/**
 * Plays and grades one episode of each task.
 * @throws LlmError when the model cannot be asked; InputError when there is no such server
 */
export async function runBaseline(plan: BaselinePlan): Promise<BaselineResult> {
  const environment = baselineEnvironment(plan.environment);
  const { llm, url, seed, watcher } = plan;
  const client = llm === undefined ? undefined : new LlmClient(llm);
  const runtime = url === undefined ? inProcessRuntime(environment) : await httpRuntime(url, environment);
  const startedMs = performance.now();
  const tasks: BaselineTask[] = [];
  try {
    for (const taskId of plan.taskIds) {
      const label = taskId ?? environment.definition.id;
      watcher?.started?.(label);
      const policy =
        client === undefined
          ? environment.createPolicy(plan.agent ?? environment.agent)
          : modelPolicy(client, taskId, plan, environment, startedMs);
      const task = await playTask(runtime, environment, policy, taskId, plan);
      tasks.push(task);
      watcher?.graded?.(task);
    }
  } finally {
    await runtime.close();
  }
  return {
    mode: llm === undefined ? 'deterministic' : 'openai',
    runtime: url === undefined ? 'in-process' : 'http',
    environment: environment.definition.id,
    version: environment.definition.version,
    agent: llm === undefined ? (plan.agent ?? environment.agent) : 'llm',
    seed,
    model: llm?.model ?? null,
    api_base_url: llm?.baseUrl ?? null,
    tasks,
    mean_score: tasks.reduce((sum, { score }) => sum + score, 0) / tasks.length,
    usage: client === undefined ? null : { ...client.usage, cost_usd: client.costUsd },
  };
}

/** Steps at which the model gave a valid action. */
export function validAnswers({ answers }: BaselineTask): number {
  return answers === undefined ? 0 : answers.asked - answers.keptLast;
}

function modelPolicy(
  client: LlmClient,
  taskId: string | number | null,
  { llm, maxSteps = Number.POSITIVE_INFINITY }: BaselinePlan,
  { definition }: BaselineEnvironment,
  startedMs: number,
): LlmPolicy<Record<string, unknown>, object> {
  const { history, decideEvery, maxCalls = Number.POSITIVE_INFINITY, timeBudgetSeconds } = llm!;
  const task = definition.tasks?.find(({ id }) => id === taskId);
  const length = Number(task?.windows ?? task?.episode_length ?? ENDLESS_STEPS);
  const budgetMs = 1000 * (timeBudgetSeconds ?? Number.POSITIVE_INFINITY);
  return new LlmPolicy(definition, client, {
    history,
    decideEvery: decideEvery ?? Math.max(1, Math.ceil(Math.min(maxSteps, length) / maxCalls)),
    mayAsk: () => performance.now() - startedMs < budgetMs,
  });
}

async function playTask(
  runtime: BaselineRuntime,
  environment: BaselineEnvironment,
  policy: AsyncPolicy<Record<string, unknown>, object>,
  taskId: string | number | null,
  { seed, watcher, maxSteps }: BaselinePlan,
): Promise<BaselineTask> {
  const startedMs = performance.now();
  const { id, tasks } = environment.definition;
  const label = taskId ?? id;
  const mostSteps = maxSteps ?? (tasks === undefined ? ENDLESS_STEPS : Number.POSITIVE_INFINITY);
  policy.reset({ taskId: label, seed });
  const actions: Record<string, unknown>[] = [];
  const rewards: number[] = [];
  let previousAction = environment.initialAction(label);
  let { observation, reward, done } = await runtime.reset({
    ...(taskId !== null && { task_id: taskId }),
    seed,
  });
  while (!done && actions.length < mostSteps) {
    const stepIndex = actions.length;
    const askedMs = performance.now();
    const timer = setInterval(() => {
      watcher?.waiting?.(label, stepIndex + 1, Math.round((performance.now() - askedMs) / 1000));
    }, 1000);
    const step = { observation, reward, previousAction, stepIndex };
    const action = await Promise.resolve(policy.act(step)).finally(() => clearInterval(timer));
    ({ observation, reward, done } = await runtime.step(action));
    actions.push(action);
    rewards.push(reward ?? 0);
    previousAction = action;
    const error = policy instanceof LlmPolicy ? policy.keptBecause : null;
    watcher?.stepped?.(label, actions.length, { action, reward: reward ?? 0, done, error });
  }
  const total = rewards.reduce((sum, each) => sum + each, 0);
  const { score, feedback, breakdown } = (await runtime.grade()) ?? {
    score: total / Math.max(1, rewards.length),
    feedback: 'Mean reward: the environment has no grader.',
    breakdown: {},
  };
  return {
    task_id: taskId,
    score,
    complete: done || tasks === undefined,
    return: total,
    steps: actions.length,
    wall_s: (performance.now() - startedMs) / 1000,
    feedback,
    breakdown,
    rewards,
    actions,
    ...(policy instanceof LlmPolicy && { answers: policy.answers }),
  };
}
