import type { StepResult } from '@servegym/openenv/definition';
import type { EnvironmentInstance, EpisodeReset } from './playable.ts';

/** The episode that is about to be played. */
export interface PolicyEpisode {
  readonly taskId: string | number;
  /** Seed of the episode. A policy that draws random numbers derives its own stream from it. */
  readonly seed: number;
  /** Other options of the reset: traffic, a trace, a shift. Only a policy that plans on the true traffic needs them. */
  readonly resetOptions?: Readonly<Record<string, unknown>>;
}

/** Input of a policy's choice. */
export interface PolicyStep<Action, Observation> {
  readonly observation: Observation;
  /** Reward of the last window; `null` right after a reset. */
  readonly reward: number | null;
  /** The configuration in force: the last action played, or the environment's default right after a reset. */
  readonly previousAction: Action;
  /** Windows played so far; 0 right after a reset. */
  readonly stepIndex: number;
}

/** A controller whose decisions may take time, because it asks somebody; every `Policy` is one. */
export interface AsyncPolicy<Action, Observation> {
  readonly name: string;
  /** Forgets the last episode. Called before the first `act` of each episode. */
  reset(episode: PolicyEpisode): void;
  act(step: PolicyStep<Action, Observation>): Action | Promise<Action>;
  /**
   * Sees a window that somebody else has played, so as to know what `act` would have made it know. Without it, `act`
   * is called for that.
   */
  watch?(step: PolicyStep<Action, Observation>, action: Action): void;
  /** Reasons for the last action. */
  explain?(): unknown;
}

/**
 * A controller: it sees the server over the last window and chooses the knobs of the next one. Deterministic: the same
 * episode and the same steps give the same actions.
 */
export interface Policy<Action, Observation> extends AsyncPolicy<Action, Observation> {
  act(step: PolicyStep<Action, Observation>): Action;
}

/** The episode to play. */
export interface EpisodePlan<Action> extends PolicyEpisode {
  /** What the episode is begun with. Default: task and seed. */
  readonly reset?: EpisodeReset;
  /** The configuration that `reset` applies: what the policy finds in force before its first action. */
  readonly initialAction: Action;
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

/** Plays one episode from `reset` to `done` or `maxSteps`. `onWindow` sees the answer to every action. */
export async function playEpisode<Action, Observation>(
  environment: EnvironmentInstance<Action, Observation>,
  policy: AsyncPolicy<Action, Observation>,
  plan: EpisodePlan<Action>,
  onWindow?: (window: PlayedWindow<Observation, Action>) => void,
) {
  const { taskId, seed, initialAction, resetOptions, maxSteps = Number.POSITIVE_INFINITY } = plan;
  const { reset = { task_id: taskId, seed } } = plan;
  const actions: Action[] = [];
  let previousAction = initialAction;
  let total = 0;
  const started = performance.now();
  policy.reset({ taskId, seed, ...(resetOptions && { resetOptions }) });
  let { observation, reward, done } = await environment.reset(reset);
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
  return {
    actions,
    /** Sum of the rewards, undiscounted. */
    return: total,
    /** Wall time of policy and environment, s. */
    wallSeconds: (performance.now() - started) / 1000,
  };
}

/** An episode on this thread, window by window. */
export interface WindowedEpisode<Action, Observation> {
  readonly done: boolean;
  /** Windows played. */
  readonly window: number;
  /** In force. */
  readonly action: Action;
  observation(): Observation;
  /** Plays a window. Answers its reward. */
  step(action: Action): number;
}

/** What a policy sees before a window, but for the reward of the last one. */
export type SeenWindow<Action, Observation> = Omit<PolicyStep<Action, Observation>, 'reward'>;

export function windowOf<Action, Observation>(
  episode: WindowedEpisode<Action, Observation>,
): SeenWindow<Action, Observation> {
  const { action: previousAction, window: stepIndex } = episode;
  return { observation: episode.observation(), previousAction, stepIndex };
}

/** Plays an episode on this thread to its end. Answers the sum of its rewards. */
export function playWindows<Action, Observation>(
  episode: WindowedEpisode<Action, Observation>,
  act: (step: PolicyStep<Action, Observation>) => Action,
): number {
  let reward: number | null = null;
  let total = 0;
  while (!episode.done) {
    reward = episode.step(act({ ...windowOf(episode), reward }));
    total += reward;
  }
  return total;
}

/** The action with one knob at another value. */
export function turned<Action>(action: Action, knob: keyof Action, value: Action[keyof Action]): Action {
  return { ...action, [knob]: value };
}

/** The actions of an episode whose traffic is known in advance, and what they earn. */
export interface Plan<Action> {
  readonly actions: readonly Action[];
  readonly return: number;
}

/** What earns most; the first of those that earn as much. */
export function bestOf<Plan extends { readonly return: number }>(plans: readonly Plan[]): Plan {
  return plans.reduce((a, b) => (b.return > a.return ? b : a));
}
