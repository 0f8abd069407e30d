import { readFileSync } from 'node:fs';
import {
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type EpisodeRecord,
  type Grade,
  type ResetOptions,
  type StepResult,
} from '@servegym/openenv/definition';
import type { z } from 'zod';
import { readSeed, taskSplits } from './scenario.ts';
import type { TaskHead, Tasks } from './tasks.ts';

/** Part of a task that all environments with windows have. */
export interface WindowTask<Action extends object> extends KnobMask<Action>, TaskHead {
  /** Windows of an episode. */
  readonly windows: number;
  /** Length of a window, s. */
  readonly windowSeconds: number;
}

/** An episode whose settings are changed once a window. */
export interface WindowEpisode<Action, Observation> {
  readonly task: WindowTask<Action & object>;
  /** Windows played. */
  readonly window: number;
  readonly done: boolean;
  observation(): Observation;
  /** Plays a valid action. Answers its reward. */
  step(action: Action): number;
}

/** What the sessions of an environment do with its episodes. */
interface SessionParts<Action, State, Episode> {
  begin(reset: ResetOptions): Episode | Promise<Episode>;
  /** Plays a valid action. Answers its reward. */
  play(episode: Episode, action: Action): number | Promise<number>;
  /** Length of an episode that has ended, for a message. */
  length(episode: Episode): string;
  /** Details of the last window, for `metadata`. */
  report(episode: Episode): object;
  /** State of an episode that began with `reset`; without one, the state before the first reset. */
  stateOf(episode: Episode | null, reset: ResetOptions): State;
}

/** All that makes an environment with windows: its entry in the registry, from which its definition and its grader follow. */
export interface WindowParts<
  Action extends object,
  Observation,
  State,
  Task extends WindowTask<Action>,
  Episode extends WindowEpisode<Action, Observation>,
> extends Pick<SessionParts<Action, State, Episode>, 'report' | 'stateOf'> {
  readonly id: string;
  readonly version: string;
  readonly description: string;
  readonly readme: URL;
  readonly actionSchema: z.ZodType<Action>;
  readonly observationSchema: z.ZodType<Observation>;
  readonly stateSchema: z.ZodType<State>;
  readonly knobs: readonly (keyof Action & string)[];
  readonly tasks: Tasks<Task>;
  readonly shifts: readonly string[];
  resetOptions(): z.ZodObject;
  /** @throws EnvironmentError */
  choose(reset: ResetOptions): Task;
  /** Requests of an episode with these options, about. */
  episodeSize(reset: ResetOptions): number;
  start(task: Task, seed: number): Episode;
  /** Knobs that decide nothing in a task. */
  idleKnobs(task: Task): readonly (keyof Action & string)[];
  /** What `GET /tasks` says of a task beside what all tasks have. */
  describe(task: Task): object;
  grade(record: EpisodeRecord<Action>): Grade;
}

/** Makes the definition of an environment with windows. Its version tells the tasks of one's own apart. */
export function windowEnvironment<
  Action extends object,
  Observation extends object,
  State,
  Task extends WindowTask<Action>,
  Episode extends WindowEpisode<Action, Observation>,
>(
  parts: WindowParts<Action, Observation, State, Task, Episode>,
): EnvironmentDefinition<Action, Observation, State> {
  const { id, version, description, readme, tasks, shifts, knobs, episodeSize, grade } = parts;
  return {
    id,
    version: `${version}${tasks.versionMark()}`,
    name: id,
    description,
    readme: readFileSync(readme, 'utf8'),
    action: parts.actionSchema,
    observation: parts.observationSchema,
    state: parts.stateSchema,
    resetOptions: parts.resetOptions(),
    episodeSize,
    grade,
    splits: taskSplits(tasks.ids() as string[], shifts),
    tasks: tasks.all().map((task) => {
      const idle = parts.idleKnobs(task);
      return {
        id: task.id,
        name: task.name,
        difficulty: task.difficulty,
        description: task.description,
        windows: task.windows,
        window_seconds: task.windowSeconds,
        default_action: task.defaultAction,
        active_actions: knobs.filter((knob) => !idle.includes(knob)),
        masked_actions: idle,
        ...parts.describe(task),
      };
    }),
    create: () =>
      episodeSession({
        ...parts,
        begin: (reset) => parts.start(parts.choose(reset), readSeed(reset)),
        play: (episode, action) => episode.step(requireMaskedKnobsHeld(episode.task, action)),
        length: ({ window }) => `${window} windows`,
      }),
  };
}

/** One session of an environment: the episode that is under way. */
export function episodeSession<
  Action,
  Observation extends object,
  State,
  Episode extends { readonly done: boolean; observation(): Observation },
>(parts: SessionParts<Action, State, Episode>): Environment<Action, Observation, State> {
  let episode: Episode | null = null;
  let begunWith: ResetOptions = {};
  const begun = (begins: Episode, reset: ResetOptions) => {
    episode = begins;
    begunWith = reset;
    return answer(begins, null);
  };
  const answer = (of: Episode, reward: number | null): StepResult<Observation> => ({
    observation: of.observation(),
    reward,
    done: of.done,
    metadata: { ...parts.report(of) },
  });
  return {
    reset(options) {
      const begins = parts.begin(options);
      return begins instanceof Promise
        ? begins.then((ready) => begun(ready, options))
        : begun(begins, options);
    },
    step(action) {
      const open = episode;
      if (open === null) {
        throw new EnvironmentError('NOT_RESET', 'No episode has been started: call reset first');
      }
      if (open.done) {
        throw new EnvironmentError(
          'EPISODE_OVER',
          `The episode ended after ${parts.length(open)}: reset to play another`,
        );
      }
      const reward = parts.play(open, action);
      return reward instanceof Promise ? reward.then((earned) => answer(open, earned)) : answer(open, reward);
    },
    state: () => parts.stateOf(episode, begunWith),
  };
}

/** Fields of a task that decide which actions it takes. */
export interface KnobMask<Action extends object> {
  readonly defaultAction: Action;
  /**
   * Knobs that stay at the default: an action that sets one to anything else is refused. Absent where all are free;
   * never empty, and never all.
   */
  readonly maskedKnobs?: readonly (keyof Action & string)[];
}

/** The action with the masked knobs at the task's defaults. */
export function holdMaskedKnobs<Action extends object>(
  { defaultAction, maskedKnobs }: KnobMask<Action>,
  action: Action,
): Action {
  if (maskedKnobs === undefined) return action;
  const held = maskedKnobs.map((knob) => [knob, defaultAction[knob]]);
  return { ...action, ...(Object.fromEntries(held) as Partial<Action>) };
}

/**
 * The action to play: a default that has come as a float32 is the default.
 * @throws EnvironmentError `MASKED_KNOB` when an action sets a masked knob to something else than the task's default
 */
export function requireMaskedKnobsHeld<Action extends object>(
  task: KnobMask<Action> & { readonly id: string },
  action: Action,
): Action {
  const { id, defaultAction, maskedKnobs } = task;
  if (maskedKnobs === undefined) return action;
  const turned = maskedKnobs.filter((knob) => !isDefault(action[knob], defaultAction[knob]));
  if (turned.length === 0) return holdMaskedKnobs(task, action);
  const held = turned.map((knob) => `\`${knob}\` to stay at ${JSON.stringify(defaultAction[knob])}`);
  const got = turned.map((knob) => JSON.stringify(action[knob]));
  throw new EnvironmentError(
    'MASKED_KNOB',
    `Expected ${held.join(' and ')}, got ${got.join(' and ')}: \`${id}\` masks ${turned.length === 1 ? 'this knob' : 'these knobs'}. Send the default; the episode goes on`,
  );
}

function isDefault(value: unknown, standard: unknown): boolean {
  return value === standard || (typeof standard === 'number' && value === Math.fround(standard));
}
