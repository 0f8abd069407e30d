import { type AsyncPolicy, playEpisode } from '@servegym/agents';
import { type Caller, type EnvironmentDefinition, HttpProblem } from '@servegym/openenv';

/** Tasks and seed to play. */
export interface BaselineRequest {
  /** Ids of the tasks, as `GET /tasks` has them. */
  readonly taskIds: readonly (string | number)[];
  readonly seed: number;
}

/** One graded episode of a baseline. */
export interface BaselineResult extends PlayedBaseline {
  readonly task_id: string | number;
  readonly name: string;
  readonly difficulty: string;
  /** Range in which InferenceGym expects the score. */
  readonly expected_range?: readonly [number, number];
}

/** The baselines of an environment: agents that need nothing but the server. */
export interface BaselineSuite {
  /** The first is the one that plays when none is named. */
  readonly agents: readonly string[];
  /** Seed of the episodes where none is given. */
  readonly seed: number;
  play(agent: string, request: BaselineRequest, caller: Caller): Promise<BaselineResult[]>;
}

export interface BaselineParts {
  readonly agents: readonly string[];
  readonly seed: number;
  play(agent: string, taskId: string | number, seed: number, caller: Caller): Promise<PlayedBaseline>;
  readonly expectedRanges?: Readonly<Record<string | number, readonly [number, number]>>;
}

/** Plays agents on the tasks of an environment. The same request gives the same answer. */
export function baselineSuite(
  definition: Pick<EnvironmentDefinition, 'name' | 'tasks' | 'grade'>,
  { agents, seed, play, expectedRanges = {} }: BaselineParts,
): BaselineSuite {
  /** Results that everybody asks for. */
  const known = new Map<string, BaselineResult>();
  return {
    agents,
    seed,
    async play(agent, { taskIds, seed: asked }, caller) {
      const results: BaselineResult[] = [];
      for (const taskId of taskIds) {
        const key = JSON.stringify([agent, taskId]);
        const result =
          asked === seed && known.has(key) ? known.get(key)! : await playTask(agent, taskId, asked, caller);
        if (asked === seed) known.set(key, result);
        results.push(result);
      }
      return results;
    },
  };

  async function playTask(
    agent: string,
    taskId: string | number,
    asked: number,
    caller: Caller,
  ): Promise<BaselineResult> {
    const task = definition.tasks?.find(({ id }) => id === taskId);
    if (task === undefined || definition.grade === undefined) {
      throw new HttpProblem(501, `${definition.name} has no task ${taskId} that could be graded.`);
    }
    const expected = agent === agents[0] && asked === seed ? expectedRanges[taskId] : undefined;
    return {
      task_id: taskId,
      name: task.name,
      difficulty: task.difficulty,
      ...(await play(agent, taskId, asked, caller)),
      ...(expected && { expected_range: expected }),
    };
  }
}

/** A graded episode. */
export interface PlayedBaseline {
  readonly score: number;
  readonly breakdown: Readonly<Record<string, unknown>>;
  readonly feedback: string;
  /** The action that was kept throughout; `null` when the agent changed it. */
  readonly configuration: Readonly<Record<string, unknown>> | null;
  readonly steps: number;
  readonly total_reward: number;
}

/** Plays an agent on a fresh instance of an environment with a grader, and grades what it did. */
export async function playBaseline<Action, Observation extends object, State extends object>(
  definition: EnvironmentDefinition<Action, Observation, State>,
  policy: AsyncPolicy<Action, Observation>,
  episode: { readonly taskId: string | number; readonly seed: number; readonly initialAction: Action },
  caller?: Caller,
): Promise<PlayedBaseline> {
  const environment = definition.create();
  try {
    const played = await playEpisode(environment, policy, episode);
    const reset = { task_id: episode.taskId, seed: episode.seed };
    const { score, breakdown, feedback } = await definition.grade!(
      { reset, actions: played.actions },
      caller,
    );
    return {
      score,
      breakdown,
      feedback,
      configuration: constantOf(played.actions),
      steps: played.actions.length,
      total_reward: played.return,
    };
  } finally {
    await environment.close?.();
  }
}

function constantOf(actions: readonly unknown[]): Readonly<Record<string, unknown>> | null {
  const [first] = actions;
  const text = JSON.stringify(first);
  const isConstant = first !== undefined && actions.every((action) => JSON.stringify(action) === text);
  return isConstant ? (first as Record<string, unknown>) : null;
}
