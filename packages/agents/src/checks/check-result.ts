/** One thing that was looked at, and what was found. */
export interface CheckResult {
  readonly id: string;
  readonly group: CheckGroup;
  /** What should hold, as a sentence. */
  readonly title: string;
  /** `note`: it does not hold, and need not for a task as easy as this one says it is. */
  readonly outcome: 'pass' | 'fail' | 'note';
  /** What was measured, by name. */
  readonly figures: Readonly<Record<string, number | string>>;
  /** Where it does not hold: what that means and what to change. */
  readonly advice?: string;
}

/** Whether the simulation is sound, whether the server answers to its knobs, whether it is a game, whether it can be cheated. */
export type CheckGroup = 'physics' | 'reaction' | 'game' | 'exploits';

/** How much is played. */
export interface CheckEffort {
  /** Traces of the training split on which every configuration is tried, and those on which the best are told apart. */
  readonly traces: { readonly few: number; readonly many: number };
  /** Seeds of the test split that everything else is played on. */
  readonly seeds: readonly number[];
  /** States in which the values of each knob are compared. */
  readonly states: number;
}

export const QUICK: CheckEffort = { traces: { few: 1, many: 1 }, seeds: [2_000_000], states: 6 };
export const THOROUGH: CheckEffort = {
  traces: { few: 2, many: 8 },
  seeds: [2_000_000, 2_000_001, 2_000_002],
  states: 36,
};
