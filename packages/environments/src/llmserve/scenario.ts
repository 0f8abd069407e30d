import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { z } from 'zod';
import {
  named,
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
  unknownName,
} from '../scenario.ts';
import { readTrace, traceArrivals, traceOption } from '../traces.ts';
import { findWorkload, WORKLOAD_IDS } from '../workload/fitted-workload.ts';
import { type ServeTask, serveTasks } from './serve-task.ts';
import { FASTER, profileFits, SHIFTS, scaleArrivals, shiftTask, taskUnderSource } from './shifts.ts';

/** Most requests of an episode. */
const MOST_REQUESTS = 250_000;

/** Options of `reset` of `llmserve` beside `seed` and `episode_id`. The tasks are those known when this is called. */
export function serveResetOptions() {
  const profiles = profileNames(serveTasks.all(), profileFits);
  return z.object({
    task_id: taskOption(serveTasks.ids(), serveTasks.shippedIds[0]),
    traffic: z
      .enum(WORKLOAD_IDS)
      .optional()
      .meta({ description: "Requests as a public trace has them, instead of the task's own" }),
    trace: traceOption,
    rate_scale: rateScaleOption,
    profile: profileOption(profiles, "The engine profile of each GPU's server, instead of the task's own"),
    shift: shiftOption(SHIFTS),
  });
}

/** Reset options that say what is played, as `chooseTask` takes them. */
export type ServeScenario = Partial<z.infer<ReturnType<typeof serveResetOptions>>>;

/**
 * The task that is played: that of `task_id` (`static_workload` when absent), under `traffic` or `trace`, with arrivals
 * `rate_scale` times as fast, on `profile`, shifted by `shift`: another GPU or model is one near that profile.
 * @throws EnvironmentError `UNKNOWN_TASK`, `UNKNOWN_TRAFFIC`, `UNKNOWN_TRACE`, `TRACE_CHANGED`, `INVALID_TRACE`,
 *   `INVALID_RATE_SCALE`, `UNKNOWN_PROFILE`, `UNKNOWN_SHIFT`, `SHIFT_IMPOSSIBLE` or `CONFLICTING_OPTIONS`
 */
export function chooseTask(options: ResetOptions): ServeTask {
  const { traffic, trace, rate_scale = 1, profile, shift } = options;
  const task = readTask(serveTasks, options);
  if (traffic !== undefined && trace !== undefined) {
    throw new EnvironmentError(
      'CONFLICTING_OPTIONS',
      'Expected `traffic` or `trace`, got both: leave one out',
    );
  }
  let played = task;
  if (traffic !== undefined) played = underTraffic(task, traffic);
  if (trace !== undefined) {
    const { name, trace: requests } = readTrace(trace);
    played = taskUnderSource(task, name, { kind: 'trace', trace: requests });
  }
  const rateScale = readWithin('rate_scale', rate_scale, RATE_SCALE);
  if (rateScale !== 1) played = scaleArrivals(played, rateScale);
  if (profile !== undefined) {
    played = { ...played, profile: readProfile('profile', profile, profileNames([task], profileFits)) };
  }
  if (shift !== undefined) played = underShift(played, shift, SHIFTS, shiftTask);
  requirePlayable(played);
  return played;
}

/**
 * Requests of an episode with these options, about: never fewer than a trace in columns makes. 0 for options that
 * `chooseTask` refuses.
 */
export function episodeSize(options: ResetOptions): number {
  const task = serveTasks.find(named(options.task_id ?? serveTasks.shippedIds[0]));
  if (task === undefined) return 0;
  const { rate_scale: scale = 1, shift } = options;
  const rate = (typeof scale === 'number' ? scale : 1) * (shift === 'rate_1.5' ? FASTER : 1);
  const seconds = task.windows * task.windowSeconds * rate;
  const { traffic, trace } = options;
  if (traffic !== undefined) return (findWorkload(named(traffic))?.arrivals.perSecond ?? 0) * seconds;
  if (trace !== undefined) {
    const known = traceArrivals(trace);
    if (known === undefined) return 0;
    const played = requestsOf(known.arrivals, seconds / known.unitSeconds);
    return typeof trace === 'string' ? played : Math.max(known.arrivals.length, played);
  }
  return meanRate(task.phases) * seconds;
}

/** Requests of a trace that is played over and over for a time, in the unit of its arrivals. */
function requestsOf(arrivals: ArrayLike<number>, time: number): number {
  const count = arrivals.length;
  const lasts = arrivals[count - 1] - arrivals[0];
  return lasts > 0 ? (count * time) / lasts : count;
}

/** Arrivals a second, over the time that each phase takes on average. */
function meanRate(phases: ServeTask['phases']): number {
  let requests = 0;
  let time = 0;
  for (const { weight, windows, arrivalsPerSecond } of phases) {
    const share = weight * (windows[0] + windows[1]);
    requests += (share * (arrivalsPerSecond[0] + arrivalsPerSecond[1])) / 2;
    time += share;
  }
  return requests / time;
}

function underTraffic(task: ServeTask, id: unknown): ServeTask {
  const model = findWorkload(named(id));
  if (model === undefined) throw unknownName('traffic', id, WORKLOAD_IDS, 'UNKNOWN_TRAFFIC');
  return taskUnderSource(task, model.id, { kind: 'workload', model });
}

/** A short trace with everything at once would come over and over for as long as the episode lasts. */
function requirePlayable({ source, windows, windowSeconds }: ServeTask): void {
  if (source?.requests.kind !== 'trace') return;
  const { arrivalMs } = source.requests.trace;
  const last = arrivalMs[arrivalMs.length - 1];
  const rounds = last === 0 ? 1 : Math.max(1, (windows * windowSeconds * 1000 * source.rateScale) / last);
  if (arrivalMs.length * rounds <= MOST_REQUESTS || rounds === 1) return;
  throw new EnvironmentError(
    'INVALID_TRACE',
    `Expected a trace that makes at most ${MOST_REQUESTS} requests an episode, got ${arrivalMs.length} requests in ${last / 1000} s, played over and over for ${windows * windowSeconds} s`,
  );
}
