import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import { listProfiles } from '@servegym/profiles';
import { z } from 'zod';
import {
  named,
  RATE_SCALE,
  rateScaleOption,
  readProfile,
  readWithin,
  underShift,
  unknownName,
} from '../reset-values.ts';
import type { RequestSource } from './requests/request-source.ts';
import { readTrace, traceArrivals, traceOption } from './requests/trace-option.ts';
import { FASTER, profileFits, SHIFTS, scaleArrivals, shiftTask, taskUnderSource } from './shifts.ts';
import { findServeTask, serveTaskIds } from './task-registry.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { findWorkload, WORKLOAD_IDS } from './workload/fitted-workload.ts';

const EASIEST = 'static_workload';
/** Most requests of an episode. */
const MOST_REQUESTS = 250_000;

/** Options of `reset` of `llmserve` beside `seed` and `episode_id`. The tasks are those known when this is called. */
export function serveResetOptions() {
  return z.object({
    task_id: z.enum(serveTaskIds()).default(EASIEST).meta({ description: 'The task to play' }),
    traffic: z
      .enum(WORKLOAD_IDS)
      .optional()
      .meta({ description: "Requests as a public trace has them, instead of the task's own" }),
    trace: traceOption,
    rate_scale: rateScaleOption,
    profile: z
      .enum(profileNames())
      .optional()
      .meta({ description: "The engine profile of each GPU's server, instead of the task's own" }),
    shift: z
      .enum(SHIFTS)
      .optional()
      .meta({ description: 'A change of the task, such as its GPU, model or traffic' }),
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
  const { task_id = EASIEST, traffic, trace, rate_scale = 1, profile, shift } = options;
  const task = findServeTask(named(task_id));
  if (task === undefined) throw unknownName('task_id', task_id, serveTaskIds(), 'UNKNOWN_TASK');
  if (traffic !== undefined && trace !== undefined) {
    throw new EnvironmentError(
      'CONFLICTING_OPTIONS',
      'Expected `traffic` or `trace`, got both: leave one out',
    );
  }
  let played = task;
  if (traffic !== undefined) played = taskUnderSource(task, workloadSource(traffic));
  if (trace !== undefined) played = taskUnderSource(task, traceSource(trace));
  const rateScale = readWithin('rate_scale', rate_scale, RATE_SCALE);
  if (rateScale !== 1) played = scaleArrivals(played, rateScale);
  if (profile !== undefined)
    played = { ...played, profile: readProfile('profile', profile, profileNames(task)) };
  if (shift !== undefined) {
    const unshifted = played;
    played = underShift(shift, SHIFTS, (one) => shiftTask(unshifted, one));
  }
  requirePlayable(played);
  return played;
}

/**
 * Requests of an episode with these options, about: never fewer than a trace in columns makes. 0 for options that
 * `chooseTask` refuses.
 */
export function episodeSize(options: ResetOptions): number {
  const task = findServeTask(named(options.task_id ?? EASIEST));
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

function workloadSource(id: unknown): RequestSource {
  const model = findWorkload(named(id));
  if (model === undefined) throw unknownName('traffic', id, WORKLOAD_IDS, 'UNKNOWN_TRAFFIC');
  return { name: model.id, requests: { kind: 'workload', model }, rateScale: 1, promptScale: 1 };
}

function traceSource(option: unknown): RequestSource {
  const { name, trace } = readTrace(option);
  return { name, requests: { kind: 'trace', trace }, rateScale: 1, promptScale: 1 };
}

function profileNames(task?: ServeTask): string[] {
  const tasks = task === undefined ? serveTaskIds().map((id) => findServeTask(id)!) : [task];
  return listProfiles()
    .filter((profile) => tasks.some((one) => profileFits(profile, one)))
    .map(({ name }) => name);
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
