import { findProfile } from '@servegym/profiles';
import { RandomStream, simulateTrace } from '@servegym/simulator';

/** Simulates so many requests of a Poisson process, again and again with other seeds. */
export function runJob(input: {
  readonly seed: number;
  readonly requests: number;
  readonly times: number;
}): number {
  let iterations = 0;
  for (let time = 0; time < input.times; time += 1) {
    const random = new RandomStream(input.seed + time, 'benchmark');
    const arrivalMs = new Float64Array(input.requests);
    for (let i = 1; i < input.requests; i += 1) arrivalMs[i] = arrivalMs[i - 1] + random.exponential(200);
    const trace = {
      source: 'benchmark',
      arrivalMs,
      inputTokens: Int32Array.from(arrivalMs, () => random.integer(50, 2000)),
      outputTokens: Int32Array.from(arrivalMs, () => random.integer(20, 400)),
    };
    iterations += simulateTrace(trace, { profile: findProfile('a100-40gb-llama-3-8b') }).counters.iterations;
  }
  return iterations;
}
