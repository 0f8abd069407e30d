import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { portableMath } from '@servegym/simulator';
import { z } from 'zod';
import {
  profileNames,
  RATE_SCALE,
  readProfile,
  readTask,
  readTraffic,
  readWithin,
  relatedProfile,
  scenarioOptions,
  underShift,
} from '../scenario.ts';
import { readTrace, type ServeTrace, traceArrivals } from '../traces.ts';
import type { WORKLOAD_IDS } from '../workload/fitted-workload.ts';
import {
  type FleetTask,
  fleetProfileFits,
  fleetTasks,
  type RequestStream,
  type Surges,
} from './fleet-task.ts';

/** Length of an episode, hours. */
const HOURS = { least: 0.05, most: 24 };

/** Options of `reset` of `fleet` beside `seed` and `episode_id`. The tasks are those known when this is called. */
export function fleetResetOptions() {
  const ofProfile = "The engine profile of a replica, instead of the task's own";
  const shared = scenarioOptions(fleetTasks, FLEET_SHIFTS, fleetProfileFits, ofProfile);
  const { task_id, traffic, trace, rate_scale, profile, ...rest } = shared;
  return z.object({
    ...{ task_id, traffic, trace },
    hours: z.number().min(HOURS.least).max(HOURS.most).optional().meta({
      description: "Length of the episode instead of the task's, or the trace's; 24 begins at midnight",
    }),
    ...{ rate_scale, profile },
    second_profile: profile.meta({
      description: 'The engine profile of a second kind of replica, for `second_replicas`',
    }),
    ...rest,
  });
}

/** Reset options that say what is played, as `chooseFleetTask` takes them. */
export type FleetScenario = Partial<z.infer<ReturnType<typeof fleetResetOptions>>>;

/**
 * The task that is played: that of `task_id` (`diurnal` when absent), under `traffic` or on a `trace`, for so many `hours`, with arrivals
 * `rate_scale` times as fast, on `profile`, with `second_profile` beside it, shifted by `shift`.
 * @throws EnvironmentError `UNKNOWN_TASK`, `UNKNOWN_TRAFFIC`, `CONFLICTING_OPTIONS`, `UNKNOWN_TRACE`, `TRACE_CHANGED`, `INVALID_TRACE`, `INVALID_HOURS`, `INVALID_RATE_SCALE`, `UNKNOWN_PROFILE`, `UNKNOWN_SHIFT` or
 *   `SHIFT_IMPOSSIBLE`
 */
export function chooseFleetTask(options: ResetOptions): FleetTask {
  const { trace, hours, rate_scale = 1, profile, second_profile, shift } = options;
  let played = readTask(fleetTasks, options);
  const model = readTraffic(options);
  if (model !== undefined) {
    const { id, arrivals } = model;
    const rate = { perSecond: arrivals.perSecond, peakToTrough: 1 };
    const lengths = id as (typeof WORKLOAD_IDS)[number];
    played = { ...played, streams: [{ name: id, class: 'interactive', rate, lengths }] };
  }
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
  return meanRequests(task);
}

/** Requests of an episode of a task without a trace, on average. */
export function meanRequests({ streams, windows, windowSeconds }: FleetTask): number {
  let perSecond = 0;
  for (const { rate, turns, lengths } of streams) {
    let surging = 1;
    for (const { everySeconds, factor, seconds } of rate.surges ?? []) {
      surging += (((factor[0] + factor[1]) / 2 - 1) * (seconds[0] + seconds[1])) / 2 / everySeconds;
    }
    let count = turns?.mean ?? 1;
    if (turns !== undefined && typeof lengths !== 'string') {
      const added = typical(turns.added) + typical(lengths.output);
      const most = Math.max(1, (turns.maxPrompt - lengths.prompt.median) / added);
      count *= 1 - portableMath.exp(-most / count);
    }
    perSecond += rate.perSecond * surging * count;
  }
  return perSecond * windows * windowSeconds;
}

/** Mean of log-normal lengths, without their ends. */
function typical({ median, sigma }: { readonly median: number; readonly sigma: number }): number {
  return median * portableMath.exp(sigma ** 2 / 2);
}

/** A task under the requests of a trace, to their end and one window more, a day at most. */
function onTrace(task: FleetTask, requests: ServeTrace, rateScale: number): FleetTask {
  const { arrivalMs } = requests;
  const seconds = Math.min(HOURS.most * 3600, arrivalMs[arrivalMs.length - 1] / 1000 / rateScale);
  const windows = Math.ceil(seconds / task.windowSeconds) + 1;
  return { ...task, windows, trace: { requests, rateScale } };
}

/** Names of the changes of a task that test how policies generalise. */
export const FLEET_SHIFTS = [
  'rate_1.3',
  'burstier',
  'long_prompts',
  'slow_cold_start',
  'spot',
  'failures',
  'other_gpu',
] as const;
export type FleetShift = (typeof FLEET_SHIFTS)[number];

/** Arrivals of `rate_1.3` come this many times as fast. */
const FASTER = 1.3;
/** Prompts of `long_prompts`, and what later turns add, are this many times as long. */
const LONGER = 1.5;
/** Surges of `burstier` come this many times as often and add this many times as much. */
const BURSTIER = 1.5;
/** Surges of `burstier` for interactive streams without any. */
const SURGES: readonly Surges[] = [
  { everySeconds: 1200, factor: [1.5, 3], seconds: [30, 300], rampSeconds: 10 },
];
/** Cold starts of `slow_cold_start`, s: an image and weights that come over the network. */
const SLOW_COLD_START = [60, 300] as const;
/** The second kind of `spot`: the notice is that of AWS EC2 Spot, price and frequency are choices. */
const SPOT = { priceShare: 0.4, reclaimsPerHour: 1, noticeSeconds: 120 } as const;
/** Failures of a replica an hour under `failures`. */
const FAILURES_PER_HOUR = 0.5;

/** The same task, shifted: knobs, objectives, prices and default settings stay. @throws RangeError when no profile fits */
export function shiftFleetTask(task: FleetTask, shift: FleetShift): FleetTask {
  if (task.trace !== undefined && ['burstier', 'long_prompts'].includes(shift)) {
    throw new RangeError(`Expected another shift for a trace than \`${shift}\`, which changes what is drawn`);
  }
  switch (shift) {
    case 'rate_1.3':
      return scaleFleetArrivals(task, FASTER);
    case 'burstier':
      return { ...task, streams: task.streams.map(burstier) };
    case 'long_prompts':
      return {
        ...task,
        streams: task.streams.map((stream) => ({
          ...stream,
          promptScale: (stream.promptScale ?? 1) * LONGER,
        })),
      };
    case 'slow_cold_start': {
      const { second } = task;
      const slower = { coldStartSeconds: SLOW_COLD_START };
      return { ...task, ...slower, ...(second && { second: { ...second, ...slower } }) };
    }
    case 'spot': {
      const { profile, coldStartSeconds } = task;
      return { ...task, second: { profile, coldStartSeconds, spot: SPOT } };
    }
    case 'failures':
      return { ...task, failuresPerHour: task.failuresPerHour + FAILURES_PER_HOUR };
    case 'other_gpu':
      return { ...task, profile: relatedProfile(task, 'gpu', fleetProfileFits) };
  }
}

/** The same task with arrivals `factor` times as fast. */
export function scaleFleetArrivals(task: FleetTask, factor: number): FleetTask {
  const { trace } = task;
  if (trace !== undefined) {
    return { ...task, trace: { ...trace, rateScale: trace.rateScale * factor } };
  }
  const streams = task.streams.map((stream) => ({
    ...stream,
    rate: { ...stream.rate, perSecond: stream.rate.perSecond * factor },
  }));
  return { ...task, streams };
}

function burstier(stream: RequestStream): RequestStream {
  const added = stream.class === 'interactive' ? SURGES : [];
  const more = stream.rate.surges?.map(({ everySeconds, factor: [least, most], ...rest }) => ({
    ...rest,
    everySeconds: everySeconds / BURSTIER,
    factor: [1 + BURSTIER * (least - 1), 1 + BURSTIER * (most - 1)] as const,
  }));
  return { ...stream, rate: { ...stream.rate, surges: more ?? added } };
}
