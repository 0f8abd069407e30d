import { RandomStream } from '@servegym/simulator';
import { type LengthDistribution, REQUEST_CLASSES, type ServeTask } from '../tasks/serve-task.ts';
import { classShares } from './class-shares.ts';
import type { PhaseSchedule } from './phase-schedule.ts';
import type { RequestList } from './request-list.ts';

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
