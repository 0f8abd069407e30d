import type { EnvironmentDefinition, EpisodeRecord, Grade, StepResult } from '@servegym/openenv/definition';

type Awaitable<Answer> = Answer | Promise<Answer>;

/** Options of the reset that begins an episode; without `task_id` where the environment has no tasks. */
export type EpisodeReset = Readonly<{ task_id?: string | number; seed: number }>;

/** One running environment, which plays one episode at a time. */
export interface EnvironmentInstance<Action, Observation> {
  reset(options: EpisodeReset): Awaitable<StepResult<Observation>>;
  step(action: Action): Awaitable<StepResult<Observation>>;
  close?(): Awaitable<void>;
}

/** What an environment says of itself. */
type Described = 'id' | 'version' | 'name' | 'description' | 'tasks' | 'action' | 'observation';

/**
 * An environment as policies play it and evaluations grade it: a definition with the action that episodes begin with and
 * the figures that reports need.
 */
export interface PlayableEnvironment<Action, Observation>
  extends Pick<EnvironmentDefinition<Action, Observation>, Described> {
  create(): EnvironmentInstance<Action, Observation>;
  /** Grades an episode from its seed and actions. */
  readonly grade?:
    | ((record: EpisodeRecord<Action> & { readonly reset: EpisodeReset }) => Awaitable<Grade>)
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
interface ServiceMeter<Observation> {
  see(window: Pick<StepResult<Observation>, 'observation' | 'metadata'>): void;
  figures(): ServiceFigures;
}
