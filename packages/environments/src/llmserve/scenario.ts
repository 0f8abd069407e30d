import { EnvironmentError, type ResetOptions } from '@servegym/openenv/definition';
import type { EngineProfile } from '@servegym/simulator';
import { z } from 'zod';
import {
  named,
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
import { type LogNormal, REQUEST_CLASSES } from '../tasks.ts';
import { readTrace, traceArrivals } from '../traces.ts';
import { findWorkload } from '../workload/fitted-workload.ts';
import type { RequestSource } from './episode-requests.ts';
import { QUANTIZATION_TIERS } from './schema.ts';
import { type Phase, type ServeTask, serveTasks } from './serve-task.ts';

/** Most requests of an episode. */
const MOST_REQUESTS = 250_000;

const SERVER_FROM =
  'Describes the server by an estimate from its metrics instead of by its profile; so in real mode without `profile`';

/** Options of `reset` of `llmserve` beside `seed` and `episode_id`. The tasks are those known when this is called. */
export function serveResetOptions() {
  const ofProfile = "The engine profile of each GPU's server, instead of the task's own";
  return z.object({
    ...scenarioOptions(serveTasks, SHIFTS, profileFits, ofProfile),
    server_from: z.enum(['metrics']).optional().meta({ description: SERVER_FROM }),
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
  const { trace, rate_scale = 1, profile, shift, server_from: serverFrom } = options;
  const task = readTask(serveTasks, options);
  const model = readTraffic(options);
  let played = task;
  if (model !== undefined) played = taskUnderSource(task, model.id, { kind: 'workload', model });
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
  if (serverFrom !== undefined) played = { ...played, serverFrom: 'metrics' };
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
    const { arrivals, unitSeconds } = known;
    const count = arrivals.length;
    const lasts = arrivals[count - 1] - arrivals[0];
    // A trace is played over and over.
    const played = lasts > 0 ? (count * (seconds / unitSeconds)) / lasts : count;
    return typeof trace === 'string' ? played : Math.max(count, played);
  }
  return meanRate(task.phases) * seconds;
}

/** Arrivals a second, over the time that each phase takes on average. */
export function meanRate(phases: ServeTask['phases']): number {
  let requests = 0;
  let time = 0;
  for (const { weight, windows, arrivalsPerSecond } of phases) {
    const share = weight * (windows[0] + windows[1]);
    requests += (share * (arrivalsPerSecond[0] + arrivalsPerSecond[1])) / 2;
    time += share;
  }
  return requests / time;
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

/** Names of the changes of a task that test how policies generalise. */
export const SHIFTS = ['rate_1.5', 'long_prompts', 'other_gpu', 'other_model'] as const;
export type Shift = (typeof SHIFTS)[number];

/** Prompts of `long_prompts` are this many times as long. */
const LONGER = 2;
/** Arrivals of `rate_1.5` come this many times as fast. */
const FASTER = 1.5;

/** The same task, shifted: knobs, objectives, prices and default configuration stay. @throws RangeError when no profile fits */
export function shiftTask(task: ServeTask, shift: Shift): ServeTask {
  switch (shift) {
    case 'rate_1.5':
      return scaleArrivals(task, FASTER);
    case 'long_prompts':
      return lengthenPrompts(task, LONGER);
    case 'other_gpu':
      return { ...task, profile: relatedProfile(task, 'gpu', profileFits) };
    case 'other_model':
      return { ...task, profile: relatedProfile(task, 'model', profileFits) };
  }
}

/** The same task with arrivals `factor` times as fast. */
export function scaleArrivals(task: ServeTask, factor: number): ServeTask {
  const phases = task.phases.map((phase) => ({
    ...phase,
    arrivalsPerSecond: [phase.arrivalsPerSecond[0] * factor, phase.arrivalsPerSecond[1] * factor] as const,
  }));
  const { source } = task;
  return { ...task, phases, ...(source && { source: { ...source, rateScale: source.rateScale * factor } }) };
}

function lengthenPrompts(task: ServeTask, factor: number): ServeTask {
  const phases = task.phases.map((phase) => {
    const traffic = Object.entries(phase.traffic).map(([kind, { prompt, ...rest }]) => [
      kind,
      { ...rest, prompt: longer(prompt, factor) },
    ]);
    return { ...phase, traffic: Object.fromEntries(traffic) as Phase['traffic'] };
  });
  const { source } = task;
  return {
    ...task,
    phases,
    ...(source && { source: { ...source, promptScale: source.promptScale * factor } }),
  };
}

/** Lengths `factor` times as long, whole tokens. */
export function longer({ median, sigma, min, max }: LogNormal, factor: number): LogNormal {
  const whole = (tokens: number) => Math.max(1, Math.round(tokens * factor));
  return { median: median * factor, sigma, min: whole(min), max: whole(max) };
}

/** True when a profile has weights of every precision and the acceptance tables that a task needs. */
export function profileFits(profile: EngineProfile, task: ServeTask): boolean {
  const tables = profile.speculation?.survival;
  return (
    QUANTIZATION_TIERS.every((tier) => profile.weights[tier] !== undefined) &&
    [task.acceptance, ...task.phases.map((phase) => phase.acceptance ?? task.acceptance)].every(
      (table) => tables?.[table] !== undefined,
    )
  );
}

/**
 * A task's machine, objectives, prices and tenants under requests from elsewhere. The phases become one: classes have
 * the shares that they have on average over the task's phases, and quality the value.
 */
function taskUnderSource(task: ServeTask, name: string, requests: RequestSource['requests']): ServeTask {
  const { phases } = task;
  const time = phases.map(({ weight, windows }) => (weight * (windows[0] + windows[1])) / 2);
  const total = time.reduce((sum, part) => sum + part, 0);
  const average = (of: (phase: Phase) => number) =>
    phases.reduce((sum, phase, i) => sum + of(phase) * time[i], 0) / total;
  const arrivals = (phase: Phase) => (phase.arrivalsPerSecond[0] + phase.arrivalsPerSecond[1]) / 2;
  const traffic: { -readonly [Kind in keyof Phase['traffic']]: Phase['traffic'][Kind] } = {};
  for (const kind of REQUEST_CLASSES) {
    const lengths = phases.find((phase) => phase.traffic[kind] !== undefined)?.traffic[kind];
    if (lengths === undefined) continue;
    const share = average((phase) => arrivals(phase) * (phase.traffic[kind]?.share ?? 0)) / average(arrivals);
    traffic[kind] = { ...lengths, share };
  }
  const span = (of: (phase: Phase) => readonly [number, number]) => {
    const ranges = phases.map(of);
    return [
      Math.min(...ranges.map(([least]) => least)),
      Math.max(...ranges.map(([, most]) => most)),
    ] as const;
  };
  const all: Phase = {
    ...phases[0],
    name,
    weight: 1,
    windows: span(({ windows }) => windows),
    burstiness: 0,
    traffic,
    tenantGiB: span(({ tenantGiB }) => tenantGiB),
    acceptance: task.acceptance,
    qualityValue: average((phase) => phase.qualityValue),
  };
  return { ...task, phases: [all], source: { name, requests, rateScale: 1, promptScale: 1 } };
}
