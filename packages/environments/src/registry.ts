import type { EnvironmentDefinition, EpisodeRecord, Grade, ResetOptions } from '@servegym/openenv/definition';
import type { z } from 'zod';
import { benchmark } from './benchmark/environment.ts';
import type { Feature } from './feature.ts';
import { fleet } from './fleet/environment.ts';
import { inferencegym } from './inferencegym/environment.ts';
import type { GymWorld } from './inferencegym/gym-world.ts';
import { llmserve } from './llmserve/environment.ts';
import type { RealSettings } from './llmserve/real/real-settings.ts';
import type { KnownTask, Tasks } from './tasks.ts';

/** The environments that come with ServeGym. A new one is one entry more. */
export const ENVIRONMENTS = { llmserve, fleet, inferencegym, benchmark } as const;

export type EnvironmentId = keyof typeof ENVIRONMENTS;
export const ENVIRONMENT_IDS = Object.keys(ENVIRONMENTS) as unknown as readonly [
  EnvironmentId,
  ...EnvironmentId[],
];

/** The environment of this id, for those who ask nothing that one alone has; `undefined` when there is none. */
export function findEnvironment(id: string): RegisteredEnvironment | undefined {
  const known = ENVIRONMENTS as unknown as Readonly<Record<string, RegisteredEnvironment>>;
  return Object.hasOwn(known, id) ? known[id] : undefined;
}

/** Inputs of an environment; each takes those that its `takes` names, and ignores the others. */
export interface DefinitionOptions {
  /** A real server instead of the simulated one; `null`: the simulated one. */
  readonly real?: RealSettings | null | undefined;
  /** Measurements of one's own instead of those that come with the package. The hash tells episodes on them apart. */
  readonly table?: { readonly world: GymWorld; readonly hash?: string } | undefined;
  /** Address that answers name. Asked for each answer, because a server knows its port only once it listens. */
  readonly hostUrl?: (() => string) | undefined;
}

/** Kinds of input beside the tasks that come with an environment. `trace` brings rate, profile and shift with it. */
type EnvironmentInput = 'task' | 'trace' | 'table' | 'server';

/** All that is asked of an environment by those who play, train, check, serve or grade whichever it is. */
export interface RegisteredEnvironment<
  Action = unknown,
  Observation extends object = object,
  State extends object = object,
  Task extends KnownTask = KnownTask,
> {
  readonly id: string;
  /** Changes whenever the same task, seed and actions may give another episode. Definitions add what is of one's own. */
  readonly version: string;
  readonly takes: readonly EnvironmentInput[];
  /** The definition for a server, with the tasks and traces that this process knows now. */
  definition(options?: DefinitionOptions): EnvironmentDefinition<Action, Observation, State>;
  /** Does now what a first episode would have to wait for. */
  prepare?(options: DefinitionOptions): Promise<void>;
  readonly tasks: Tasks<Task>;
  readonly actionSchema: z.ZodType<Action>;
  /** Fields of an action, in the order of documents. */
  readonly knobs: readonly string[];
  /** Values of each knob that a learner chooses from. */
  readonly bins: Readonly<Record<string, readonly unknown[]>>;
  /** Figures of a step for learners, and those of the server, which are constant in an episode. */
  readonly features: readonly Feature[];
  readonly serverFeatures: readonly Feature[];
  /** Names of the changes of a task that test how policies generalise. */
  readonly shifts: readonly string[];
  /** Scenarios of servers and traffic that policies of any server are never trained on, by name. */
  readonly heldOut?: Readonly<Record<string, object>>;
  /** Schema of what a reset chooses beside `seed` and `episode_id`, with the tasks known now. */
  resetOptions(): z.ZodObject;
  /** The task that a reset plays, under its workload or trace, shift and profile. @throws EnvironmentError */
  choose(reset: ResetOptions): Task;
  /** The action in force right after a reset. @throws EnvironmentError */
  initialAction(reset: ResetOptions): Action;
  /** True where an episode may have so many requests that a server limits them. */
  readonly hasLargeEpisodes?: boolean;
  /** Steps of an episode. */
  steps(task: Task): number;
  /** Weights or prices that make the reward of a task. */
  rewardWeights(task: Task): object;
  /** Grades an episode from its record; absent where episodes are not graded. @throws EnvironmentError */
  grade?(record: EpisodeRecord<Action>, options?: DefinitionOptions): Grade | Promise<Grade>;
}

/** What one environment has alone, beside what is asked of all. */
export type Extras = Readonly<Record<string, unknown>>;
