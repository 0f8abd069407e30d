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
