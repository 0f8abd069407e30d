import { RandomStream, TICKS_PER_S } from '@servegym/simulator';
import { type LogNormal, REQUEST_CLASSES } from '../tasks.ts';
import type { PromptPrefixes } from '../workload/fitted-workload.ts';
import type { Phase, ServeTask } from './serve-task.ts';
import { classShares, type RequestList, sourceRequests } from './source-requests.ts';

/**
 * The requests of an episode, sorted into windows, with what else a window brings: its phase and the memory of tenants.
 * Request i is (`arrivalTicks[i]`, `inputTokens[i]`, ...).
 */
export interface EpisodeRequests {
  /** Ticks from the start of the episode, ascending. */
  readonly arrivalTicks: Float64Array;
  readonly inputTokens: Int32Array;
  readonly outputTokens: Int32Array;
  /** Index into `REQUEST_CLASSES`. */
  readonly classes: Uint8Array;
  /** Requests of window w are `windowStarts[w]` .. `windowStarts[w + 1] - 1`. */
  readonly windowStarts: Int32Array;
  /** Index into the task's phases, for each window. */
  readonly phases: Uint8Array;
  /** Memory of co-located tenants on each GPU, GiB, for each window. */
  readonly tenantGiB: Float64Array;
  /** Prefixes that prompts share, where they are known: the server then caches prefixes. */
  readonly prefixes?: PromptPrefixes;
}

/**
 * Draws the traffic of an episode. Phases, arrivals, lengths, classes and tenants have a random stream each, so that
 * one draw more in one does not shift another. A task with a `source` takes its requests from there.
 */
export function drawRequests(task: ServeTask, seed: number): EpisodeRequests {
  const schedule = drawPhases(task, seed);
  const requests =
    task.source === undefined ? phaseRequests(task, seed, schedule) : sourceRequests(task, seed, task.source);
  return episodeRequests(task, requests, schedule);
}

/** The requests sorted into windows, with what the schedule says of each. */
export function episodeRequests(
  task: ServeTask,
  requests: RequestList,
  schedule: Pick<PhaseSchedule, 'phases' | 'tenantGiB'>,
): EpisodeRequests {
  return {
    arrivalTicks: Float64Array.from(requests.arrivalSeconds).map((at) => Math.round(at * TICKS_PER_S)),
    inputTokens: Int32Array.from(requests.inputTokens),
    outputTokens: Int32Array.from(requests.outputTokens),
    classes: Uint8Array.from(requests.classes),
    windowStarts: windowStarts(task, requests.arrivalSeconds),
    phases: schedule.phases,
    tenantGiB: schedule.tenantGiB,
    ...(requests.prefixes && { prefixes: requests.prefixes }),
  };
}

function windowStarts({ windows, windowSeconds }: ServeTask, arrivalSeconds: readonly number[]): Int32Array {
  const starts = new Int32Array(windows + 1);
  let next = 0;
  for (let w = 0; w < windows; w++) {
    starts[w] = next;
    while (next < arrivalSeconds.length && arrivalSeconds[next] < (w + 1) * windowSeconds) next++;
  }
  starts[windows] = arrivalSeconds.length;
  return starts;
}

/** Requests as a task's phases describe them. */
export function phaseRequests(task: ServeTask, seed: number, schedule: PhaseSchedule): RequestList {
  const { windows, windowSeconds } = task;
  const arrivals = new RandomStream(seed, 'arrivals');
  const lengths = new RandomStream(seed, 'lengths');
  const classDraws = new RandomStream(seed, 'classes');
  const arrivalSeconds: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  const classes: number[] = [];
  for (let w = 0; w < windows; w++) {
    const phase = task.phases[schedule.phases[w]];
    const rate = schedule.rates[w];
    const shares = classShares(phase.traffic);
    // A Poisson process is memoryless: it may start anew in each window.
    for (let at = arrivals.exponential(1 / rate); at < windowSeconds; at += arrivals.exponential(1 / rate)) {
      const kind = classDraws.choose(shares);
      const traffic = phase.traffic[REQUEST_CLASSES[kind]];
      if (traffic === undefined) continue;
      arrivalSeconds.push(w * windowSeconds + at);
      inputTokens.push(drawLength(lengths, traffic.prompt));
      outputTokens.push(drawLength(lengths, traffic.output));
      classes.push(kind);
    }
  }
  return { arrivalSeconds, inputTokens, outputTokens, classes };
}

function drawLength(lengths: RandomStream, { median, sigma, min, max }: LogNormal): number {
  const drawn = Math.round(lengths.lognormal(Math.log(median), sigma));
  return Math.min(max, Math.max(min, drawn));
}

/** Phase, rate and tenants of each window of an episode. */
export interface PhaseSchedule {
  /** Index into the task's phases. */
  readonly phases: Uint8Array;
  /** Arrivals a second. */
  readonly rates: Float64Array;
  /** Memory of co-located tenants on each GPU, GiB. */
  readonly tenantGiB: Float64Array;
}

/** Draws the order of the phases, how long each lasts, its rate and its tenants. */
function drawPhases(task: ServeTask, seed: number): PhaseSchedule {
  const order = new RandomStream(seed, 'phases');
  const bursts = new RandomStream(seed, 'bursts');
  const tenants = new RandomStream(seed, 'tenants');
  const phases = new Uint8Array(task.windows);
  const rates = new Float64Array(task.windows);
  const tenantGiB = new Float64Array(task.windows);
  let current = 0;
  for (let w = 0; w < task.windows; ) {
    const phase = task.phases[current];
    const length = order.integer(phase.windows[0], phase.windows[1]);
    const rate = within(order.uniform(), phase.arrivalsPerSecond);
    const tenant = within(tenants.uniform(), phase.tenantGiB);
    for (const end = Math.min(w + length, task.windows); w < end; w++) {
      phases[w] = current;
      // The mean of a log-normal factor is 1 when mu is -sigma^2 / 2.
      const sigma = phase.burstiness;
      rates[w] = rate * bursts.lognormal((-sigma * sigma) / 2, sigma);
      tenantGiB[w] = tenant;
    }
    current = nextPhase(order, task.phases, current);
  }
  return { phases, rates, tenantGiB };
}

function nextPhase(order: RandomStream, phases: readonly Phase[], current: number): number {
  if (phases.length === 1) return current;
  return order.choose(phases.map((phase, i) => (i === current ? 0 : phase.weight)));
}

function within(share: number, [low, high]: readonly [number, number]): number {
  return low + share * (high - low);
}
