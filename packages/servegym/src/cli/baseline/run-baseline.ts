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

/** Which baseline to play. */
export interface BaselinePlan {
  readonly environment: BaselineEnvironmentId;
  readonly taskIds: readonly (string | number)[];
  readonly seed: number;
  /** The server to play at. Default: in this process. */
  readonly url?: URL;
  /** The model that sets the knobs. Default: the environment's deterministic agent. */
  readonly llm?: LlmSettings & { readonly history: number; readonly decideEvery: number };
  /** Another deterministic agent. */
  readonly agent?: string;
  readonly onStep?: (taskId: string | number, step: number) => void;
  readonly onTask?: (task: BaselineTask) => void;
}

/** One graded episode. */
export interface BaselineTask {
  readonly task_id: string | number;
  readonly score: number;
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

/**
 * Plays and grades one episode of each task.
 * @throws LlmError when the model cannot be asked; InputError when there is no such server
 */
export async function runBaseline(plan: BaselinePlan): Promise<BaselineResult> {
  const environment = baselineEnvironment(plan.environment);
  const { llm, url, seed } = plan;
  const client = llm === undefined ? undefined : new LlmClient(llm);
  const runtime = url === undefined ? inProcessRuntime(environment) : await httpRuntime(url, environment);
  const tasks: BaselineTask[] = [];
  try {
    for (const taskId of plan.taskIds) {
      const policy =
        client === undefined
          ? environment.createPolicy(plan.agent ?? environment.agent)
          : new LlmPolicy(environment.definition, client, llm);
      const task = await playTask(runtime, environment, policy, taskId, plan);
      tasks.push(task);
      plan.onTask?.(task);
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

async function playTask(
  runtime: BaselineRuntime,
  environment: BaselineEnvironment,
  policy: AsyncPolicy<Record<string, unknown>, object>,
  taskId: string | number,
  { seed, onStep }: BaselinePlan,
): Promise<BaselineTask> {
  const startedMs = performance.now();
  policy.reset({ taskId, seed });
  const actions: Record<string, unknown>[] = [];
  const rewards: number[] = [];
  let previousAction = environment.initialAction(taskId);
  let { observation, reward, done } = await runtime.reset({ task_id: taskId, seed });
  while (!done) {
    const action = await policy.act({ observation, reward, previousAction, stepIndex: actions.length });
    ({ observation, reward, done } = await runtime.step(action));
    actions.push(action);
    rewards.push(reward ?? 0);
    previousAction = action;
    onStep?.(taskId, actions.length);
  }
  const { score, feedback, breakdown } = await runtime.grade();
  return {
    task_id: taskId,
    score,
    return: rewards.reduce((sum, each) => sum + each, 0),
    steps: actions.length,
    wall_s: (performance.now() - startedMs) / 1000,
    feedback,
    breakdown,
    rewards,
    actions,
    ...(policy instanceof LlmPolicy && { answers: policy.answers }),
  };
}
