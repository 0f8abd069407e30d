import { EnvironmentError, type ResetOptions, type TaskSplit } from '@servegym/openenv/definition';
import { findProfile, listLastingProfiles, listProfiles } from '@servegym/profiles';
import { type EngineProfile, portableMath, weightVariant } from '@servegym/simulator';
import { z } from 'zod';
import { type KnownTask, nameList, type Tasks } from './tasks.ts';
import { traceOption } from './traces.ts';
import { type FittedWorkload, findWorkload, WORKLOAD_IDS } from './workload/fitted-workload.ts';

/**
 * The seed of the traffic; 0 when it is absent, which happens in process only: servers draw one.
 * @throws EnvironmentError `INVALID_SEED`
 */
export function readSeed({ seed = 0 }: ResetOptions): number {
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new EnvironmentError(
      'INVALID_SEED',
      `Expected \`seed\` to be a whole number from 0 to 2^53 - 1, got \`${shown(seed)}\``,
    );
  }
  return seed;
}

/** The error of an option whose value is none of the names that there are. */
function unknownName(option: string, got: unknown, names: readonly string[], code: string): EnvironmentError {
  return new EnvironmentError(
    code,
    `Expected \`${option}\` to be ${nameList(names, 'nothing')}, got \`${shown(got)}\``,
  );
}

/** A name to look up; that of nothing when it is no text. */
export function named(option: unknown): string {
  return typeof option === 'string' ? option : '';
}

/** A value of any kind in a message. */
function shown(value: unknown): string {
  const text = typeof value === 'object' || typeof value === 'function' ? typeof value : String(value);
  return text.slice(0, 100);
}

/** Least and most value of a number. */
export interface Range {
  readonly least: number;
  readonly most: number;
}

/** Arrivals may be this many times slower or faster. */
export const RATE_SCALE: Range = { least: 0.01, most: 20 };

/**
 * The reset options that environments with windows share, with the tasks known now.
 * @param fits whether a profile can play a task
 * @param ofProfile the description of `profile`
 */
export function scenarioOptions<Task extends KnownTask, const Shift extends string>(
  tasks: Tasks<Task>,
  shifts: readonly Shift[],
  fits: (profile: EngineProfile, task: Task) => boolean,
  ofProfile: string,
) {
  return {
    task_id: z
      .enum(tasks.ids() as string[])
      .default(tasks.shippedIds[0] as string)
      .meta({ description: 'The task to play' }),
    traffic: z
      .enum(WORKLOAD_IDS)
      .optional()
      .meta({ description: "Requests as a public trace has them, instead of the task's own" }),
    trace: traceOption,
    rate_scale: z
      .number()
      .min(RATE_SCALE.least)
      .max(RATE_SCALE.most)
      .optional()
      .meta({ description: 'Arrivals come this many times as fast', default: 1 }),
    profile: z.enum(profileNames(tasks.all(), fits)).optional().meta({ description: ofProfile }),
    shift: z
      .enum(shifts)
      .optional()
      .meta({ description: 'A change of the task, such as its GPU, model or traffic' }),
    servers: z.enum(['any']).optional().meta({
      description:
        'A server, traffic, objectives and prices drawn by the seed, instead of those of a task: `task_id` has no effect then',
    }),
  };
}

/** Windows of an episode on a drawn server: all alike, so that many can be played side by side. */
export const DRAWN_WINDOWS = 120;

/** True where the server is to be drawn. @throws EnvironmentError `CONFLICTING_OPTIONS` beside an option that changes a task */
export function drawsServer({ servers, ...options }: ResetOptions): boolean {
  if (servers === undefined) return false;
  const known = ['seed', 'episode_id', 'task_id', 'split', 'index', 'server_from'];
  const beside = Object.keys(options).filter((name) => options[name] !== undefined && !known.includes(name));
  if (beside.length === 0) return true;
  throw new EnvironmentError(
    'CONFLICTING_OPTIONS',
    `Expected \`servers\` without options that change a task, got \`${beside.join('` and `')}\` beside it: leave one out`,
  );
}

/** @throws EnvironmentError `INVALID_` and the name of the option */
export function readWithin(option: string, value: unknown, { least, most }: Range): number {
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw new EnvironmentError(
    `INVALID_${option.toUpperCase()}`,
    `Expected \`${option}\` to be a number from ${least} to ${most}, got \`${shown(value)}\``,
  );
}

/** Names of the profiles that can play one of these tasks. */
export function profileNames<Task>(
  tasks: readonly Task[],
  fits: (profile: EngineProfile, task: Task) => boolean,
): string[] {
  const fitting = listProfiles().filter((profile) => tasks.some((task) => fits(profile, task)));
  return fitting.map(({ name }) => name);
}

/** @throws EnvironmentError `UNKNOWN_PROFILE` */
export function readProfile(option: string, value: unknown, names: readonly string[]): string {
  if (names.includes(named(value))) return named(value);
  throw unknownName(option, value, names, 'UNKNOWN_PROFILE');
}

/** The task of a reset. @throws EnvironmentError `UNKNOWN_TASK` */
export function readTask<Task extends KnownTask>(
  tasks: Tasks<Task>,
  { task_id = tasks.shippedIds[0] }: ResetOptions,
): Task {
  const task = tasks.find(named(task_id));
  if (task !== undefined) return task;
  throw unknownName('task_id', task_id, tasks.ids() as string[], 'UNKNOWN_TASK');
}

/**
 * The model of a reset's `traffic`; `undefined` without one.
 * @throws EnvironmentError `UNKNOWN_TRAFFIC`, or `CONFLICTING_OPTIONS` beside a trace
 */
export function readTraffic({ traffic, trace }: ResetOptions): FittedWorkload | undefined {
  if (traffic === undefined) return undefined;
  if (trace !== undefined) {
    throw new EnvironmentError(
      'CONFLICTING_OPTIONS',
      'Expected `traffic` or `trace`, got both: leave one out',
    );
  }
  const model = findWorkload(named(traffic));
  if (model === undefined) throw unknownName('traffic', traffic, WORKLOAD_IDS, 'UNKNOWN_TRAFFIC');
  return model;
}

/**
 * A task under the shift that an option names.
 * @param apply shifts the task; throws a RangeError where that is impossible
 * @throws EnvironmentError `UNKNOWN_SHIFT` or `SHIFT_IMPOSSIBLE`
 */
export function underShift<Shift extends string, Task>(
  task: Task,
  shift: unknown,
  shifts: readonly Shift[],
  apply: (task: Task, shift: Shift) => Task,
): Task {
  if (!(shifts as readonly unknown[]).includes(shift)) {
    throw unknownName('shift', shift, shifts, 'UNKNOWN_SHIFT');
  }
  try {
    return apply(task, shift as Shift);
  } catch (error) {
    if (error instanceof RangeError) throw new EnvironmentError('SHIFT_IMPOSSIBLE', error.message);
    throw error;
  }
}

/**
 * The name of the profile that is most like a task's, but for its GPU or its model: among those of as many GPUs that fit, the one whose
 * memory, or weights, are nearest in size; the first by name where two are.
 * @throws RangeError when there is none
 */
export function relatedProfile<Task extends { readonly id: string; readonly profile: string }>(
  task: Task,
  other: 'gpu' | 'model',
  fits: (profile: EngineProfile, task: Task) => boolean,
): string {
  const own = findProfile(task.profile);
  const same = other === 'gpu' ? 'model' : 'gpu';
  const size = (profile: EngineProfile) =>
    portableMath.log(other === 'gpu' ? profile.gpu.memoryGiB : weightVariant(profile, 'FP16').weightGiB);
  const lasting = listLastingProfiles();
  // Where the task's own profile lasts, so does the other.
  const related = (lasting.some((profile) => profile.name === task.profile) ? lasting : listProfiles())
    .filter(
      (profile) =>
        profile[same].name === own[same].name &&
        profile[other].name !== own[other].name &&
        profile.gpu.count === own.gpu.count &&
        fits(profile, task),
    )
    .sort((a, b) => Math.abs(size(a) - size(own)) - Math.abs(size(b) - size(own)));
  const nearest = related[0];
  if (nearest === undefined) {
    throw new RangeError(
      `Expected a profile with the ${same} ${own[same].name} and another ${other} that can play \`${task.id}\`; there is none among the simulator's profiles`,
    );
  }
  return nearest.name;
}

/** Seeds of the traffic, split so that nothing is tuned on what it is judged by. Both ends belong to the split. */
export const SEED_SPLITS = {
  train: { first: 0, last: 999_999 },
  validation: { first: 1_000_000, last: 1_099_999 },
  test: { first: 2_000_000, last: 2_099_999 },
} as const;

export type SeedSplit = keyof typeof SEED_SPLITS;

/** The first seeds of a split. */
export function firstSeeds(split: SeedSplit, count: number): number[] {
  return Array.from({ length: count }, (_, i) => SEED_SPLITS[split].first + i);
}

/** The split that a seed belongs to; `undefined` when it belongs to none. */
export function splitOfSeed(seed: number): SeedSplit | undefined {
  return (Object.keys(SEED_SPLITS) as SeedSplit[]).find(
    (split) => seed >= SEED_SPLITS[split].first && seed <= SEED_SPLITS[split].last,
  );
}

/** Seeds of each split that are listed for each task; the others of `SEED_SPLITS` can be played all the same. */
const LISTED = { train: 10_000, validation: 100, test: 100 } as const satisfies Record<SeedSplit, number>;

/**
 * The episodes of these tasks as the splits of a data set, for OpenEnv's Task API. Neighbours differ in their task, so that
 * the first of any split are of all tasks. `shifted` has the test seeds under each shift.
 */
export function taskSplits(taskIds: readonly string[], shifts: readonly string[]): TaskSplit[] {
  const seeds = (split: SeedSplit): TaskSplit => ({
    name: split,
    type: split,
    size: taskIds.length * LISTED[split],
    task: (index) => ({
      task_id: taskIds[index % taskIds.length],
      seed: SEED_SPLITS[split].first + Math.floor(index / taskIds.length),
    }),
  });
  const test = seeds('test');
  const shifted: TaskSplit = {
    name: 'shifted',
    type: 'test',
    size: shifts.length * test.size,
    task: (index) => ({
      ...test.task(Math.floor(index / shifts.length)),
      shift: shifts[index % shifts.length],
    }),
  };
  return [seeds('train'), seeds('validation'), test, shifted];
}
