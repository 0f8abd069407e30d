import type { ZodType } from 'zod';

type Awaitable<Answer> = Answer | Promise<Answer>;

/** Options of the reset that begins an episode; without `task_id` where the environment has no tasks. */
export type EpisodeReset = Readonly<{ task_id?: string | number; seed: number }>;

/** Answer of an environment to a reset or an action. */
export interface EnvironmentAnswer<Observation> {
  readonly observation: Observation;
  /** `null` right after a reset. */
  readonly reward: number | null;
  readonly done: boolean;
  /** Figures beside the observation. No policy sees them. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** One running environment, which plays one episode at a time. */
export interface EnvironmentInstance<Action, Observation> {
  reset(options: EpisodeReset): Awaitable<EnvironmentAnswer<Observation>>;
  step(action: Action): Awaitable<EnvironmentAnswer<Observation>>;
  close?(): Awaitable<void>;
}

/** A graded episode. */
export interface EpisodeGrade {
  /** Strictly inside (0, 1). */
  readonly score: number;
  readonly feedback: string;
  /** `regret`, where the environment tells: the return that a planner who knows the traffic would have had more. */
  readonly breakdown: Readonly<Record<string, unknown>>;
}

/** A task as the environment describes it. It may name `masked_actions`, which stay at its `default_action`. */
export interface DescribedTask {
  readonly id: string | number;
  readonly [field: string]: unknown;
}

/**
 * An environment as policies play it and evaluations grade it: a definition of `@servegym/environments`, with the action
 * that episodes begin with and the figures that reports need.
 */
export interface PlayableEnvironment<Action, Observation> {
  readonly id: string;
  readonly version: string;
  readonly name: string;
  readonly description: string;
  readonly tasks?: readonly DescribedTask[];
  readonly action: ZodType<Action>;
  readonly observation: ZodType<Observation>;
  create(): EnvironmentInstance<Action, Observation>;
  /** Grades an episode from its seed and actions. */
  readonly grade?:
    | ((record: {
        readonly reset: EpisodeReset;
        readonly actions: readonly Action[];
      }) => Awaitable<EpisodeGrade>)
    | undefined;
  /** The configuration that `reset` applies in a task. */
  initialAction(taskId: string | number): Action;
  /** Reads the service of an episode off its windows. Evaluations need it. */
  readonly meter?: ((taskId: string | number) => ServiceMeter<Observation>) | undefined;
  /** Options of every reset, for policies that plan on the true traffic. */
  readonly scenario?: Readonly<Record<string, unknown>>;
}

/** Quality and cost of the service over an episode. */
export interface ServiceFigures {
  /** Mean over the windows of the share of requests inside their SLO. */
  readonly sloCompliance: number;
  /** USD for 1,000 output tokens over the whole episode; when there were none, USD for the episode. */
  readonly costPer1k: number;
  readonly preemptions: number;
}

/** Reads from the windows of an episode how well clients were served. */
export interface ServiceMeter<Observation> {
  see(window: Pick<EnvironmentAnswer<Observation>, 'observation' | 'metadata'>): void;
  figures(): ServiceFigures;
}
