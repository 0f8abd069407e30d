import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { z } from 'zod';
import {
  profileNames,
  profileOption,
  RATE_SCALE,
  rateScaleOption,
  readProfile,
  readTask,
  readWithin,
  shiftOption,
  taskOption,
  underShift,
} from '../scenario.ts';
import { readTrace, type ServeTrace, traceArrivals, traceOption } from '../traces.ts';
import { type FleetTask, fleetTasks } from './fleet-task.ts';
import { FLEET_SHIFTS, fleetProfileFits, scaleFleetArrivals, shiftFleetTask } from './shifts.ts';

/** Length of an episode, hours. */
const HOURS = { least: 0.05, most: 24 };

/** Options of `reset` of `fleet` beside `seed` and `episode_id`. The tasks are those known when this is called. */
export function fleetResetOptions() {
  const profiles = profileNames(fleetTasks.all(), fleetProfileFits);
  return z.object({
    task_id: taskOption(fleetTasks.ids(), fleetTasks.shippedIds[0]),
    trace: traceOption,
    hours: z.number().min(HOURS.least).max(HOURS.most).optional().meta({
      description: "Length of the episode instead of the task's, or the trace's; 24 begins at midnight",
    }),
    rate_scale: rateScaleOption,
    profile: profileOption(profiles, "The engine profile of a replica, instead of the task's own"),
    second_profile: profileOption(
      profiles,
      'The engine profile of a second kind of replica, for `second_replicas`',
    ),
    shift: shiftOption(FLEET_SHIFTS),
  });
}

/** Reset options that say what is played, as `chooseFleetTask` takes them. */
export type FleetScenario = Partial<z.infer<ReturnType<typeof fleetResetOptions>>>;

/**
 * The task that is played: that of `task_id` (`diurnal` when absent), on a `trace`, for so many `hours`, with arrivals
 * `rate_scale` times as fast, on `profile`, with `second_profile` beside it, shifted by `shift`.
 * @throws EnvironmentError `UNKNOWN_TASK`, `UNKNOWN_TRACE`, `TRACE_CHANGED`, `INVALID_TRACE`, `INVALID_HOURS`, `INVALID_RATE_SCALE`, `UNKNOWN_PROFILE`, `UNKNOWN_SHIFT` or
 *   `SHIFT_IMPOSSIBLE`
 */
export function chooseFleetTask(options: ResetOptions): FleetTask {
  const { trace, hours, rate_scale = 1, profile, second_profile, shift } = options;
  let played = readTask(fleetTasks, options);
  const rateScale = readWithin('rate_scale', rate_scale, RATE_SCALE);
  if (trace !== undefined) played = onTrace(played, readTrace(trace).trace, rateScale);
  else if (rateScale !== 1) played = scaleFleetArrivals(played, rateScale);
  if (hours !== undefined) {
    const windows = Math.ceil((readWithin('hours', hours, HOURS) * 3600) / played.windowSeconds);
    played = { ...played, windows };
  }
  const profiles = () => profileNames([played], fleetProfileFits);
  if (profile !== undefined) played = { ...played, profile: readProfile('profile', profile, profiles()) };
  if (second_profile !== undefined) {
    const { coldStartSeconds } = played;
    const second = readProfile('second_profile', second_profile, profiles());
    played = { ...played, second: { profile: second, coldStartSeconds } };
  }
  return shift === undefined ? played : underShift(played, shift, FLEET_SHIFTS, shiftFleetTask);
}

/** Requests of an episode with these options, about; all of a trace. 0 for options that `chooseFleetTask` refuses. */
export function fleetEpisodeSize(options: ResetOptions): number {
  if (options.trace !== undefined) return traceArrivals(options.trace)?.arrivals.length ?? 0;
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

/** A task under the requests of a trace, to their end and one window more, a day at most. */
function onTrace(task: FleetTask, requests: ServeTrace, rateScale: number): FleetTask {
  const { arrivalMs } = requests;
  const seconds = Math.min(HOURS.most * 3600, arrivalMs[arrivalMs.length - 1] / 1000 / rateScale);
  const windows = Math.ceil(seconds / task.windowSeconds) + 1;
  return { ...task, windows, trace: { requests, rateScale } };
}
