export type Action = Readonly<Record<string, unknown>>;
export type Observation = Readonly<Record<string, unknown>>;

/** What is played: on the same requests by a person and by policies. */
export interface GameChoice {
  readonly environment: string;
  readonly task: string;
  readonly seed: number;
}

/** A task as `GET /tasks` describes it. */
export interface GameTask {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly windows: number;
  readonly window_seconds: number;
  readonly default_action: Action;
  readonly active_actions: readonly string[];
}

/** One setting that a person chooses, with its values. */
export interface GameKnob {
  readonly name: string;
  readonly description: string;
  readonly values: readonly unknown[];
}

/** A window as each player played it, the person first. */
export type GameWindow = readonly {
  readonly action: Action;
  readonly reward: number;
  readonly observation: Observation;
}[];

/**
 * Actions as a short text for an address: runs of one action, each as its length and a letter for each knob: `a.30c01-1.40c01`.
 * Numbers are to base 36.
 */
export function movesText(knobs: readonly GameKnob[], actions: readonly Action[]): string {
  const runs: { letters: string; length: number }[] = [];
  for (const action of actions) {
    const letters = knobs.map(({ name, values }) => values.indexOf(action[name]).toString(36)).join('');
    const last = runs.at(-1);
    if (last?.letters === letters) last.length++;
    else runs.push({ letters, length: 1 });
  }
  return runs.map(({ letters, length }) => `${length.toString(36)}.${letters}`).join('-');
}

/** Actions of a text that `movesText` wrote; those that the knobs do not have, and what follows them, are left out. */
export function movesOf(
  text: string,
  knobs: readonly GameKnob[],
  { windows, default_action }: GameTask,
): Action[] {
  const actions: Action[] = [];
  for (const run of text.split('-')) {
    const [length = '', letters = ''] = run.split('.');
    const values = knobs.map(({ values }, i) => values[Number.parseInt(letters[i] ?? '', 36)]);
    if (values.includes(undefined)) break;
    const action = {
      ...default_action,
      ...Object.fromEntries(knobs.map(({ name }, i) => [name, values[i]])),
    };
    for (let left = Number.parseInt(length, 36); left > 0 && actions.length < windows; left--)
      actions.push(action);
  }
  return actions;
}
