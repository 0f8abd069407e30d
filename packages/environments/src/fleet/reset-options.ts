import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { listProfiles } from '@servegym/simulator';
import { z } from 'zod';
import { named, shown, unknownName } from '../reset-values.ts';
import { FLEET_TASK_IDS, type FleetTaskId } from './schema.ts';
import {
  FLEET_SHIFTS,
  type FleetShift,
  fleetProfileFits,
  scaleFleetArrivals,
  shiftFleetTask,
} from './shifts.ts';
import { FLEET_TASKS } from './task-registry.ts';
import type { FleetTask } from './tasks/fleet-task.ts';

const EASIEST = 'diurnal';
/** Arrivals may be this many times slower or faster. */
const RATE_SCALE = { least: 0.01, most: 20 };
/** Length of an episode, hours. */
const HOURS = { least: 0.05, most: 24 };

/** Options of `reset` of `fleet` beside `seed` and `episode_id`. */
export function fleetResetOptions() {
  const profiles = profileNames(FLEET_TASK_IDS.map((id) => FLEET_TASKS[id]));
  return z.object({
    task_id: z.enum(FLEET_TASK_IDS).default(EASIEST).meta({ description: 'The task to play' }),
    hours: z
      .number()
      .min(HOURS.least)
      .max(HOURS.most)
      .optional()
      .meta({ description: "Length of the episode instead of the task's; 24 begins at midnight" }),
    rate_scale: z
      .number()
      .min(RATE_SCALE.least)
      .max(RATE_SCALE.most)
      .optional()
      .meta({ description: 'Arrivals come this many times as fast', default: 1 }),
    profile: z
      .enum(profiles)
      .optional()
      .meta({ description: "The engine profile of a replica, instead of the task's own" }),
    second_profile: z
      .enum(profiles)
      .optional()
      .meta({ description: 'The engine profile of a second kind of replica, for `second_replicas`' }),
    shift: z
      .enum(FLEET_SHIFTS)
      .optional()
      .meta({ description: 'The task made another than the one that was learned' }),
  });
}

/** Reset options that say what is played, as `chooseFleetTask` takes them. */
export type FleetScenario = Partial<z.infer<ReturnType<typeof fleetResetOptions>>>;

/**
 * The task that is played: that of `task_id` (`diurnal` when absent), for so many `hours`, with arrivals `rate_scale`
 * times as fast, on `profile`, with `second_profile` beside it, shifted by `shift`.
 * @throws EnvironmentError `UNKNOWN_TASK`, `INVALID_HOURS`, `INVALID_RATE_SCALE`, `UNKNOWN_PROFILE`, `UNKNOWN_SHIFT` or
 *   `SHIFT_IMPOSSIBLE`
 */
export function chooseFleetTask(options: ResetOptions): FleetTask {
  const { task_id = EASIEST, hours, rate_scale = 1, profile, second_profile, shift } = options;
  const id = named(task_id);
  if (!Object.hasOwn(FLEET_TASKS, id)) throw unknownName('task_id', task_id, FLEET_TASK_IDS, 'UNKNOWN_TASK');
  let played = FLEET_TASKS[id as FleetTaskId];
  if (hours !== undefined) {
    const windows = Math.ceil((readWithin('hours', hours, HOURS) * 3600) / played.windowSeconds);
    played = { ...played, windows };
  }
  const rateScale = readWithin('rate_scale', rate_scale, RATE_SCALE);
  if (rateScale !== 1) played = scaleFleetArrivals(played, rateScale);
  if (profile !== undefined) played = { ...played, profile: readProfile('profile', profile, played) };
  if (second_profile !== undefined) {
    const { coldStartSeconds } = played;
    const second = readProfile('second_profile', second_profile, played);
    played = { ...played, second: { profile: second, coldStartSeconds } };
  }
  return shift === undefined ? played : shifted(played, shift);
}

/** Requests of an episode with these options, about; 0 for options that `chooseFleetTask` refuses. */
export function fleetEpisodeSize(options: ResetOptions): number {
  let task: FleetTask;
  try {
    task = chooseFleetTask(options);
  } catch (error) {
    if (error instanceof EnvironmentError) return 0;
    throw error;
  }
  const { streams, windows, windowSeconds } = task;
  let perSecond = 0;
  for (const { rate, turns } of streams) {
    let surging = 1;
    for (const { everySeconds, factor, seconds } of rate.surges ?? []) {
      surging += (((factor[0] + factor[1]) / 2 - 1) * (seconds[0] + seconds[1])) / 2 / everySeconds;
    }
    perSecond += rate.perSecond * surging * (turns?.mean ?? 1);
  }
  return perSecond * windows * windowSeconds;
}

function readWithin(option: string, value: unknown, { least, most }: typeof HOURS): number {
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw new EnvironmentError(
    `INVALID_${option.toUpperCase()}`,
    `Expected \`${option}\` to be a number from ${least} to ${most}, got \`${shown(value)}\``,
  );
}

function profileNames(tasks: readonly FleetTask[]): string[] {
  return listProfiles()
    .filter((profile) => tasks.some((task) => fleetProfileFits(profile, task)))
    .map(({ name }) => name);
}

function readProfile(option: string, value: unknown, task: FleetTask): string {
  const names = profileNames([task]);
  if (names.includes(named(value))) return named(value);
  throw unknownName(option, value, names, 'UNKNOWN_PROFILE');
}

function shifted(task: FleetTask, shift: unknown): FleetTask {
  if (!(FLEET_SHIFTS as readonly unknown[]).includes(shift)) {
    throw unknownName('shift', shift, FLEET_SHIFTS, 'UNKNOWN_SHIFT');
  }
  try {
    return shiftFleetTask(task, shift as FleetShift);
  } catch (error) {
    if (error instanceof RangeError) throw new EnvironmentError('SHIFT_IMPOSSIBLE', error.message);
    throw error;
  }
}
