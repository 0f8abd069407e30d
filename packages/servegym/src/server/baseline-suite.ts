import { type AsyncPolicy, playEpisode } from '@servegym/agents';
import { type EnvironmentDefinition, HttpProblem, type ResetOptions } from '@servegym/openenv';

/** What to play. */
export interface BaselineRequest {
  /** Ids of the tasks, as `GET /tasks` has them. */
  readonly taskIds: readonly (string | number)[];
  readonly seed: number;
}

/** One graded episode of a baseline. */
export interface BaselineResult {
  readonly task_id: string | number;
  readonly name: string;
  readonly difficulty: string;
  readonly score: number;
  readonly breakdown: Readonly<Record<string, unknown>>;
  readonly feedback: string;
  /** The action that was kept throughout; `null` when the agent changed it. */
  readonly configuration: Readonly<Record<string, unknown>> | null;
  readonly steps: number;
  readonly total_reward: number;
  /** Where InferenceGym expects the score. */
  readonly expected_range?: readonly [number, number];
}

/** The baselines of an environment: agents that need nothing but the server. */
export interface BaselineSuite {
  /** The first is the one that plays when none is named. */
  readonly agents: readonly string[];
  /** Seed of the episodes where none is given. */
  readonly seed: number;
  play(agent: string, request: BaselineRequest): Promise<BaselineResult[]>;
}

export interface BaselineParts<Action, Observation> {
  readonly agents: readonly string[];
  readonly seed: number;
  create(agent: string): AsyncPolicy<Action, Observation>;
  /** The action in force right after a reset. */
  initialAction(reset: ResetOptions): Action;
  readonly expectedRanges?: Readonly<Record<string | number, readonly [number, number]>>;
}

/** Plays agents on fresh instances of an environment and grades what they did. The same request gives the same answer. */
export function baselineSuite<Action, Observation extends object, State extends object>(
  definition: EnvironmentDefinition<Action, Observation, State>,
  { agents, seed, create, initialAction, expectedRanges = {} }: BaselineParts<Action, Observation>,
): BaselineSuite {
  const known = new Map<string, Promise<BaselineResult>>();
  return {
    agents,
    seed,
    async play(agent, { taskIds, seed: asked }) {
      const results: BaselineResult[] = [];
      for (const taskId of taskIds) {
        const key = JSON.stringify([agent, taskId, asked]);
        const result = known.get(key) ?? playTask(agent, taskId, asked);
        // Only what everybody asks for is worth remembering, and no failure is.
        if (asked === seed) known.set(key, result);
        result.catch(() => known.delete(key));
        results.push(await result);
      }
      return results;
    },
  };

  async function playTask(agent: string, taskId: string | number, asked: number): Promise<BaselineResult> {
    const task = definition.tasks?.find(({ id }) => id === taskId);
    if (task === undefined || definition.grade === undefined) {
      throw new HttpProblem(501, `${definition.name} has no task ${taskId} that could be graded.`);
    }
    const reset = { task_id: taskId, seed: asked };
    const environment = definition.create();
    try {
      const played = await playEpisode(environment, create(agent), {
        taskId,
        seed: asked,
        initialAction: initialAction(reset),
      });
      const { score, breakdown, feedback } = await definition.grade({ reset, actions: played.actions });
      const expected = agent === agents[0] && asked === seed ? expectedRanges[taskId] : undefined;
      return {
        task_id: taskId,
        name: task.name,
        difficulty: task.difficulty,
        score,
        breakdown,
        feedback,
        configuration: constantOf(played.actions),
        steps: played.actions.length,
        total_reward: played.return,
        ...(expected && { expected_range: expected }),
      };
    } finally {
      await environment.close?.();
    }
  }
}

function constantOf(actions: readonly unknown[]): Readonly<Record<string, unknown>> | null {
  const [first] = actions;
  const text = JSON.stringify(first);
  const isConstant = first !== undefined && actions.every((action) => JSON.stringify(action) === text);
  return isConstant ? (first as Record<string, unknown>) : null;
}
