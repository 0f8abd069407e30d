import { RandomStream } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { turned, type WindowedEpisode } from '../policy.ts';
import statements from './statements.json' with { type: 'json' };

type Awaitable<Answer> = Answer | Promise<Answer>;

/** One thing that was looked at, and what was found. */
export interface CheckResult {
  readonly id: string;
  readonly group: CheckGroup;
  /** Statement that is checked, as a sentence. */
  readonly title: string;
  /** `note`: it does not hold, and need not: the task says that it is easy, or follows what others have laid down. */
  readonly outcome: 'pass' | 'fail' | 'note';
  /** Measured figures by name. */
  readonly figures: Readonly<Record<string, number | string>>;
  /** Meaning of a failure, and the change to make. */
  readonly advice?: string;
}

/** Soundness of the simulation, reaction of the server to its knobs, room for decisions, ways to cheat. */
type CheckGroup = 'physics' | 'reaction' | 'game' | 'exploits';

/** Environments whose tasks are checked. */
export type CheckedEnvironment = Exclude<keyof typeof statements, 'all'>;

/** A statement of all environments, with what one of them says else. */
type Texts = Partial<Pick<CheckResult, 'group' | 'title' | 'advice'>>;
export function textsOf(environment: CheckedEnvironment, id: string): Texts {
  const of = (known: Readonly<Record<string, unknown>>) => known[id] as Texts;
  return { ...of(statements.all), ...of(statements[environment]) };
}

/** A statement of `statements.json`, with what was measured of it. */
interface Statement extends Pick<CheckResult, 'id' | 'figures'> {
  readonly holds: boolean;
  /** Outcome where it does not hold. Default `fail`. */
  readonly otherwise?: 'fail' | 'note' | undefined;
  /** Texts that stand for those of its id. */
  readonly texts?: Texts | undefined;
  /** What stands in the texts where they name it. */
  readonly values?: Readonly<Record<string, unknown>> | undefined;
}

/** The result of a statement; its advice is for those that do not hold. */
export function judge(
  environment: CheckedEnvironment,
  { id, holds, figures, otherwise = 'fail', texts = textsOf(environment, id), values = {} }: Statement,
): CheckResult {
  const { group, title, advice } = texts;
  const filled = (text: string) => text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
  return {
    ...{ id, group: group!, title: filled(title!), outcome: holds ? 'pass' : otherwise, figures },
    ...(!holds && advice !== undefined && { advice: filled(advice) }),
  };
}

/** Number of episodes and states. */
export interface CheckEffort {
  /** Traces of the training split on which every configuration is tried, and those on which the best are told apart. */
  readonly traces: { readonly few: number; readonly many: number };
  /** Seeds of the test split that everything else is played on. */
  readonly seeds: readonly number[];
  /** States in which the values of each knob are compared. */
  readonly states: number;
  /** Windows of an episode of `fleet`, whose planner takes long. */
  readonly fleetWindows: number;
  /** Times that a schedule for known traffic is gone through for something better, where that is how it is found. */
  readonly sweeps: number;
}

/** A first look. */
export const QUICK: CheckEffort = {
  traces: { few: 1, many: 1 },
  seeds: [2_000_000],
  states: 6,
  fleetWindows: 30,
  sweeps: 1,
};
/** Enough to rely on. */
export const THOROUGH: CheckEffort = {
  traces: { few: 2, many: 8 },
  seeds: [2_000_000, 2_000_001, 2_000_002],
  states: 36,
  fleetWindows: 120,
  sweeps: 4,
};

/** Called with the results of a group before the next one is played. */
export type OnGroup = (results: readonly CheckResult[]) => void;

/** Results of the checks of a task. */
export interface TaskCheck {
  /** As the wire has it: a number in `inferencegym`. */
  readonly taskId: string | number;
  readonly difficulty: 'easy' | 'medium' | 'hard';
  /** No check has failed. */
  readonly passed: boolean;
  readonly results: readonly CheckResult[];
  /** The best configuration that never changes, of a short search. */
  readonly bestConstant: Readonly<Record<string, unknown>>;
}

/** The checks of a task of one environment. `Tuned` is what a short search finds, for the groups after the first. */
interface TaskChecks<Tuned> {
  readonly task: { readonly id: string | number; readonly difficulty: TaskCheck['difficulty'] };
  physics(): readonly CheckResult[];
  tune(): Awaitable<Tuned>;
  /** The groups after the first. */
  readonly groups: readonly ((tuned: Tuned) => Awaitable<readonly CheckResult[]>)[];
  bestConstant(tuned: Tuned): TaskCheck['bestConstant'];
}

/** Checks that a task is a sound simulation and a game worth learning. Deterministic. */
export async function runChecks<Tuned>(
  { task, physics, tune, groups, bestConstant }: TaskChecks<Tuned>,
  onGroup: OnGroup = () => {},
): Promise<TaskCheck> {
  const results: CheckResult[] = [];
  const add = async (group: readonly CheckResult[]) => {
    results.push(...group);
    onGroup(group);
    // Let progress be shown.
    await new Promise((resolve) => setImmediate(resolve));
  };
  await add(physics());
  const tuned = await tune();
  for (const group of groups) await add(await group(tuned));
  return {
    ...{ taskId: task.id, difficulty: task.difficulty },
    ...{ passed: results.every(({ outcome }) => outcome !== 'fail'), results },
    bestConstant: bestConstant(tuned),
  };
}

/** Values of a knob that are held against each other, in named bins: each value, or each third of the range. */
export interface KnobValues<Action> {
  readonly knob: keyof Action & string;
  readonly bins: readonly { readonly name: string; readonly values: readonly Action[keyof Action][] }[];
}

/** An episode of a task, window by window. */
export interface CheckedEpisode<Action> extends Omit<WindowedEpisode<Action, object>, 'action'> {
  /** Requests that have arrived, less those that were served, failed, were refused or are in the server. */
  unaccounted(): number;
  /** Brings an episode back to the state of now, as often as it is called; only the one given last may be played. */
  fork(): () => CheckedEpisode<Action>;
}

/** The server's grade of an episode. */
export interface CheckedGrade {
  readonly score: number;
  /** Figure whose means compare policies: the return where scores fall slowly below the default, else the score. */
  readonly worth: number;
}

/** A task that is played window by window. */
export interface PlayedTask<Action extends object> {
  readonly environment: CheckedEnvironment;
  readonly id: string | number;
  readonly difficulty: 'easy' | 'medium' | 'hard';
  /** Windows of an episode. */
  readonly windows: number;
  readonly defaultAction: Action;
  /** Values of the knobs that the task leaves free. */
  readonly knobs: readonly KnobValues<Action>[];
  start(seed: number): CheckedEpisode<Action>;
}

/** A task as checks play it. `Figure` names what they measure in an episode. */
export interface CheckedTask<Action extends object, Figure extends string = string>
  extends PlayedTask<Action> {
  /** Plays an episode to its end and measures it. */
  play(seed: number, actionOf: (window: number) => Action): Readonly<Record<Figure, number>>;
  /** The server's grade. Fewer actions than windows are an episode that was left. */
  grade(seed: number, actions: readonly Action[]): Promise<CheckedGrade>;
  /** The task with its arrivals at another rate. */
  scaled(factor: number): CheckedTask<Action, Figure>;
}

export function valuesOf<Action>({ bins }: KnobValues<Action>): readonly Action[keyof Action][] {
  return bins.flatMap(({ values }) => values);
}

/** Sum of the rewards of an episode. */
export function episodeReturn<Action extends object>(
  task: PlayedTask<Action>,
  seed: number,
  actionOf: (window: number) => Action,
): number {
  const episode = task.start(seed);
  let total = 0;
  while (!episode.done) total += episode.step(actionOf(episode.window));
  return total;
}

/** Mean return of an action that is kept. */
export function keptReturn<Action extends object>(
  task: CheckedTask<Action>,
  seeds: readonly number[],
  action: Action,
): number {
  return mean(seeds.map((seed) => episodeReturn(task, seed, () => action)));
}

/** Mean of a figure while an action is kept. */
export function keptFigure<Action extends object, Figure extends string>(
  task: CheckedTask<Action, Figure>,
  seeds: readonly number[],
  action: Action,
  figure: Figure,
): number {
  return mean(seeds.map((seed) => task.play(seed, () => action)[figure]));
}

/** Turns one free knob to any of its values before every window. */
export function wanderingActions<Action extends object>(
  { knobs, defaultAction }: PlayedTask<Action>,
  seed: number,
): () => Action {
  const draws = new RandomStream(seed, 'check');
  let action = defaultAction;
  return () => {
    action = drawnTurn(draws, action, knobs[draws.integer(0, knobs.length - 1)]);
    return action;
  };
}

/** Draws every free knob anew before every window. */
export function randomActions<Action extends object>(
  { knobs, defaultAction }: PlayedTask<Action>,
  seed: number,
): () => Action {
  const draws = new RandomStream(seed, 'random actions');
  return () => {
    return knobs.reduce((action, knob) => drawnTurn(draws, action, knob), defaultAction);
  };
}

function drawnTurn<Action>(draws: RandomStream, action: Action, each: KnobValues<Action>): Action {
  const values = valuesOf(each);
  return turned(action, each.knob, values[draws.integer(0, values.length - 1)]);
}

/**
 * Goes through changes, and keeps each that earns more by `least`, until none does any more or so many sweeps are over.
 * @returns what it has come to, and what that earns
 */
export function climb<Plan>(
  start: Plan,
  changes: readonly ((plan: Plan) => Plan)[],
  worth: (plan: Plan) => number,
  { sweeps = Number.POSITIVE_INFINITY, least = 0 } = {},
): { readonly plan: Plan; readonly return: number } {
  let plan = start;
  let reached = worth(plan);
  let gained = true;
  for (let sweep = 0; sweep < sweeps && gained; sweep++) {
    gained = false;
    for (const change of changes) {
      const tried = change(plan);
      const earned = worth(tried);
      if (earned <= reached + least) continue;
      reached = earned;
      plan = tried;
      gained = true;
    }
  }
  return { plan, return: reached };
}

/** Sets one knob at a time to the value that earns most when it is kept; see `climb`. */
export function climbKnobs<Action extends object>(
  task: CheckedTask<Action>,
  seeds: readonly number[],
  start: Action,
  { knobs = task.knobs, sweeps = Number.POSITIVE_INFINITY } = {},
): ReturnType<typeof climb<Action>> {
  const changes = turnsOf(knobs).map(
    ({ knob, value }) =>
      (action: Action) =>
        turned(action, knob, value),
  );
  return climb(start, changes, (action) => keptReturn(task, seeds, action), { sweeps });
}

/** Each value of each knob. */
export function turnsOf<Action>(knobs: readonly KnobValues<Action>[]) {
  return knobs.flatMap((each) => valuesOf(each).map((value) => ({ knob: each.knob, value })));
}
