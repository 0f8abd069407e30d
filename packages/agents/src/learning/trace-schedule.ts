import { SEED_SPLITS } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';

/** Schedule of the traces that environments play during training. */
export interface TraceSchedule {
  readonly seed: number;
  /** Neighbouring environments that play the same traces in the same order. */
  readonly groupSize: number;
  /** Seeds of the traces, both ends included. */
  readonly traces: { readonly first: number; readonly last: number };
}

/** The trace that an environment plays in an episode; both are counted from 0. */
export function traceSeed({ seed, groupSize, traces }: TraceSchedule, environment: number, episode: number) {
  const group = Math.floor(environment / groupSize);
  return new RandomStream(seed, `traces of group ${group}`, episode).integer(traces.first, traces.last);
}

/** Traces of the training split that a search with this seed plays, from the `from`-th on. */
export function trainingTraces(seed: number, count: number, from = 0): number[] {
  const schedule = { seed, groupSize: 1, traces: SEED_SPLITS.train };
  return Array.from({ length: count }, (_, i) => traceSeed(schedule, 0, from + i));
}
