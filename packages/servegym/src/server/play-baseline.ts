import { type AsyncPolicy, playEpisode } from '@servegym/agents';
import type { Caller, EnvironmentDefinition } from '@servegym/openenv';

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
