import { RandomStream } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';

/** Values of a knob that are held against each other, in named bins: each value, or each third of the range. */
export interface KnobValues<Action> {
  readonly knob: keyof Action & string;
  readonly bins: readonly { readonly name: string; readonly values: readonly Action[keyof Action][] }[];
}

/** An episode of a task, window by window. */
export interface CheckedEpisode<Action> {
  readonly done: boolean;
  /** Windows played. */
  readonly window: number;
  /** Plays a window. Answers its reward. */
  step(action: Action): number;
  observation(): object;
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

/** The action with one knob at another value. */
export function turned<Action>(action: Action, knob: keyof Action, value: Action[keyof Action]): Action {
  return { ...action, [knob]: value };
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
    const drawn = knobs[draws.integer(0, knobs.length - 1)];
    const values = valuesOf(drawn);
    action = turned(action, drawn.knob, values[draws.integer(0, values.length - 1)]);
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
    let action = defaultAction;
    for (const drawn of knobs) {
      const values = valuesOf(drawn);
      action = turned(action, drawn.knob, values[draws.integer(0, values.length - 1)]);
    }
    return action;
  };
}

/**
 * Sets one knob at a time to the value that earns most when it is kept, until nothing is gained any more or each knob has
 * had so many turns.
 */
export function climbKnobs<Action extends object>(
  task: CheckedTask<Action>,
  seeds: readonly number[],
  start: Action,
  { knobs = task.knobs, turns = Number.POSITIVE_INFINITY } = {},
): { readonly action: Action; readonly return: number } {
  let action = start;
  let reached = keptReturn(task, seeds, action);
  let gained = true;
  for (let turn = 0; turn < turns && gained; turn++) {
    gained = false;
    for (const each of knobs) {
      for (const value of valuesOf(each)) {
        const tried = turned(action, each.knob, value);
        const earned = keptReturn(task, seeds, tried);
        if (earned <= reached) continue;
        reached = earned;
        action = tried;
        gained = true;
      }
    }
  }
  return { action, return: reached };
}
