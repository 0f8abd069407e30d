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

/**
 * A controller: it sees the server over the last window and chooses the knobs of the next one. Deterministic: the same
 * episode and the same steps give the same actions.
 */
export interface Policy<Action, Observation> {
  readonly name: string;
  /** Forgets the last episode. Called before the first `act` of each episode. */
  reset(episode: PolicyEpisode): void;
  act(step: PolicyStep<Action, Observation>): Action;
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
