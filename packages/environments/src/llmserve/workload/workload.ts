import { RandomStream, TICKS_PER_S } from '@servegym/simulator';
import { type LengthDistribution, type Phase, REQUEST_CLASSES, type ServeTask } from '../tasks/serve-task.ts';

/** All that comes from outside in an episode. Request i is (`arrivalTicks[i]`, `inputTokens[i]`, ...). */
export interface Workload {
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
}

/**
 * Draws the traffic of an episode. Phases, arrivals, lengths, classes and tenants have a random stream each, so that
 * one draw more in one does not shift another.
 */
export function generateWorkload(task: ServeTask, seed: number): Workload {
  const { windows, windowSeconds } = task;
  const schedule = drawPhases(task, seed);
  const arrivals = new RandomStream(seed, 'arrivals');
  const lengths = new RandomStream(seed, 'lengths');
  const classDraws = new RandomStream(seed, 'classes');
  const arrivalTicks: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  const classes: number[] = [];
  const windowStarts = new Int32Array(windows + 1);

  for (let w = 0; w < windows; w++) {
    windowStarts[w] = arrivalTicks.length;
    const phase = task.phases[schedule.phases[w]];
    const rate = schedule.rates[w];
    const shares = REQUEST_CLASSES.map((name) => phase.traffic[name]?.share ?? 0);
    // A Poisson process is memoryless: it may start anew in each window.
    for (let at = arrivals.exponential(1 / rate); at < windowSeconds; at += arrivals.exponential(1 / rate)) {
      const kind = classDraws.choose(shares);
      const traffic = phase.traffic[REQUEST_CLASSES[kind]];
      if (traffic === undefined) continue;
      arrivalTicks.push(Math.round((w * windowSeconds + at) * TICKS_PER_S));
      inputTokens.push(drawLength(lengths, traffic.prompt));
      outputTokens.push(drawLength(lengths, traffic.output));
      classes.push(kind);
    }
  }
  windowStarts[windows] = arrivalTicks.length;
  return {
    arrivalTicks: Float64Array.from(arrivalTicks),
    inputTokens: Int32Array.from(inputTokens),
    outputTokens: Int32Array.from(outputTokens),
    classes: Uint8Array.from(classes),
    windowStarts,
    phases: schedule.phases,
    tenantGiB: schedule.tenantGiB,
  };
}

interface PhaseSchedule {
  readonly phases: Uint8Array;
  /** Arrivals a second, for each window. */
  readonly rates: Float64Array;
  readonly tenantGiB: Float64Array;
}

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

function drawLength(lengths: RandomStream, { median, sigma, min, max }: LengthDistribution): number {
  const drawn = Math.round(lengths.lognormal(Math.log(median), sigma));
  return Math.min(max, Math.max(min, drawn));
}
