import type { Interval } from '@servegym/agents';
import { RandomStream } from '@servegym/simulator';

const RESAMPLES = 2_000;
const TAIL = 0.025;

/**
 * 95 % interval of a statistic over training runs that all played the same traces: every resample draws runs and traces
 * with replacement, so that the interval has the chance of the training in it as well as that of the traffic.
 */
export function nestedBootstrap(
  runs: readonly (readonly number[])[],
  statistic: (values: Float64Array) => number,
): Interval {
  const traces = runs[0]?.length ?? 0;
  if (traces === 0 || runs.some((run) => run.length !== traces)) {
    throw new RangeError('Expected at least one run, all of the same number of traces');
  }
  const random = new RandomStream(0, 'nested bootstrap');
  const drawn = new Float64Array(runs.length * traces);
  const estimates = Float64Array.from({ length: RESAMPLES }, () => {
    const picked = Int32Array.from({ length: traces }, () => random.integer(0, traces - 1));
    let filled = 0;
    for (let r = 0; r < runs.length; r++) {
      const run = runs[random.integer(0, runs.length - 1)]!;
      for (const trace of picked) drawn[filled++] = run[trace]!;
    }
    return statistic(drawn);
  }).sort();
  const at = (share: number) => estimates[Math.round(share * (RESAMPLES - 1))]!;
  return [at(TAIL), at(1 - TAIL)];
}
