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

/** A statement about a task with what was measured of it. */
export interface Statement extends Omit<CheckResult, 'outcome'> {
  readonly holds: boolean;
  /** Outcome where it does not hold. Default `fail`. */
  readonly otherwise?: 'fail' | 'note' | undefined;
}

/** The result of a statement; its advice is for those that do not hold. */
export function judge({
  id,
  group,
  title,
  holds,
  otherwise = 'fail',
  figures,
  advice,
}: Statement): CheckResult {
  const outcome = holds ? 'pass' : otherwise;
  return { id, group, title, outcome, figures, ...(!holds && advice !== undefined && { advice }) };
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
export interface TaskChecks<Tuned> {
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
