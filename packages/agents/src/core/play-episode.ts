import type { StepResult } from '@servegym/openenv/definition';
import type { EnvironmentInstance } from './playable-environment.ts';
import type { AsyncPolicy } from './policy.ts';

/** The episode to play. */
export interface EpisodePlan<Action> {
  readonly taskId: string | number;
  /** Seed of the traffic. */
  readonly seed: number;
  /** The configuration that `reset` applies: what the policy finds in force before its first action. */
  readonly initialAction: Action;
  /** Options of the reset beside task and seed, for the policy: the environment knows them. */
  readonly resetOptions?: Readonly<Record<string, unknown>> | undefined;
  /** Actions after which an episode without an end is left. Default: no limit. */
  readonly maxSteps?: number;
}

/** An action and the answer to it. */
export interface PlayedWindow<Observation, Action = unknown> {
  readonly action: Action;
  readonly observation: Observation;
  readonly reward: number;
  readonly done: boolean;
  readonly metadata?: StepResult<Observation>['metadata'];
}

/** An episode that has been played to its end. */
export interface PlayedEpisode<Action> {
  readonly actions: readonly Action[];
  /** Sum of the rewards, undiscounted. */
  readonly return: number;
  /** Wall time of policy and environment, s. */
  readonly wallSeconds: number;
}

/** Plays one episode from `reset` to `done` or `maxSteps`. `onWindow` sees the answer to every action. */
export async function playEpisode<Action, Observation>(
  environment: EnvironmentInstance<Action, Observation>,
  policy: AsyncPolicy<Action, Observation>,
  { taskId, seed, initialAction, resetOptions, maxSteps = Number.POSITIVE_INFINITY }: EpisodePlan<Action>,
  onWindow?: (window: PlayedWindow<Observation, Action>) => void,
): Promise<PlayedEpisode<Action>> {
  const actions: Action[] = [];
  let previousAction = initialAction;
  let total = 0;
  const started = performance.now();
  policy.reset({ taskId, seed, ...(resetOptions && { resetOptions }) });
  let { observation, reward, done } = await environment.reset({ task_id: taskId, seed });
  while (!done && actions.length < maxSteps) {
    const action = await policy.act({ observation, reward, previousAction, stepIndex: actions.length });
    const answer = await environment.step(action);
    const earned = answer.reward ?? 0;
    ({ observation, reward, done } = answer);
    actions.push(action);
    previousAction = action;
    total += earned;
    onWindow?.({
      ...{ action, observation, reward: earned, done },
      ...(answer.metadata && { metadata: answer.metadata }),
    });
  }
  return { actions, return: total, wallSeconds: (performance.now() - started) / 1000 };
}
