import { RandomStream } from '@servegym/simulator';
import { type LengthDistribution, type Phase, REQUEST_CLASSES, type ServeTask } from '../tasks/serve-task.ts';
import type { RequestList } from './request-source.ts';

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

function drawLength(lengths: RandomStream, { median, sigma, min, max }: LengthDistribution): number {
  const drawn = Math.round(lengths.lognormal(Math.log(median), sigma));
  return Math.min(max, Math.max(min, drawn));
}

/** Shares of the classes in a phase, in the order of `REQUEST_CLASSES`. */
export function classShares(traffic: Phase['traffic']): number[] {
  return REQUEST_CLASSES.map((name) => traffic[name]?.share ?? 0);
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
export function drawPhases(task: ServeTask, seed: number): PhaseSchedule {
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
