import { RandomStream } from '@servegym/simulator';

/** Which traces environments play while they are learned from. */
export interface TraceSchedule {
  readonly seed: number;
  /** Neighbouring environments that play the same traces in the same order. */
  readonly groupSize: number;
  /** Seeds of the traces, both ends included. */
  readonly traces: { readonly first: number; readonly last: number };
}

/** Answers, each time it is asked, the trace of the next episode of an environment. */
export function traceSeeds({ seed, groupSize, traces }: TraceSchedule): (environment: number) => number {
  const streams = new Map<number, RandomStream>();
  return (environment) => {
    let stream = streams.get(environment);
    if (stream === undefined) {
      stream = new RandomStream(seed, `traces of group ${Math.floor(environment / groupSize)}`);
      streams.set(environment, stream);
    }
    return stream.integer(traces.first, traces.last);
  };
}
