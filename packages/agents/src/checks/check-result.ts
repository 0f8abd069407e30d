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
  /** Seeds of the training split that constants are searched on. */
  readonly searchSeeds: readonly number[];
  /** Seeds of the test split that everything else is played on. */
  readonly seeds: readonly number[];
  /** States in which the values of each knob are compared. */
  readonly states: number;
  /** Rounds over all knobs in the search of the best constant. */
  readonly rounds: number;
}

export const QUICK: CheckEffort = { searchSeeds: [0], seeds: [2_000_000], states: 8, rounds: 1 };
export const THOROUGH: CheckEffort = {
  searchSeeds: [0, 1, 2, 3],
  seeds: [2_000_000, 2_000_001, 2_000_002],
  states: 36,
  rounds: 3,
};
