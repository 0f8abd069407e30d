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
export type CheckGroup = 'physics' | 'reaction' | 'game' | 'exploits';

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

/** Gathers results group by group, so that what was found can be shown before the next group is played. */
export class CheckRun {
  readonly results: CheckResult[] = [];
  readonly #onGroup: (results: readonly CheckResult[]) => void;

  constructor(onGroup: (results: readonly CheckResult[]) => void = () => {}) {
    this.#onGroup = onGroup;
  }

  get passed(): boolean {
    return this.results.every(({ outcome }) => outcome !== 'fail');
  }

  async add(group: readonly CheckResult[]): Promise<void> {
    this.results.push(...group);
    this.#onGroup(group);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
