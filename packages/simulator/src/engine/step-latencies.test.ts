import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LatencyHistogram, StepLatencies } from './latency-histogram.ts';

const MOST = 5;
/** Steps of about the same duration, and some of another. */
const steps = fc
  .record({
    base: fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 2 ** 51 })),
    steps: fc.array(
      fc.record({
        longer: fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 2 ** 20 }), fc.nat({ max: 2 ** 45 })),
        sequences: fc.array(fc.nat({ max: 9 }), { minLength: MOST, maxLength: MOST }),
        flush: fc.nat({ max: 5 }).map((n) => n === 0),
      }),
      { maxLength: 40 },
    ),
  })
  .map(({ base, steps: drawn }) => drawn.map((step) => ({ ...step, ticks: base + step.longer })));

test('steps counted together are the samples of steps added one by one', () => {
  fc.assert(
    fc.property(steps, (load) => {
      const together = new LatencyHistogram();
      const latencies = new StepLatencies(together);
      const single = new LatencyHistogram();
      for (const { ticks, sequences, flush } of load) {
        const counted = latencies.during(ticks, MOST);
        for (let n = 1; n <= MOST; n++) {
          counted[n] += sequences[n - 1];
          if (sequences[n - 1] > 0) single.add(ticks / n, n * sequences[n - 1]);
        }
        if (flush) latencies.flush();
      }
      latencies.flush();
      assert.deepEqual(together.entries(), single.entries());
      assert.equal(together.total, single.total);
    }),
    { numRuns: 1000 },
  );
});

test('a duration at the edge of a bin is on the side where a single sample is', () => {
  for (let exponent = 13; exponent < 49; exponent++) {
    for (const n of [1, 2, 3, 5]) {
      for (const offset of [-1, 0, 1]) {
        const ticks = n * 2 ** exponent + offset;
        const together = new LatencyHistogram();
        const single = new LatencyHistogram();
        const latencies = new StepLatencies(together);
        // The first step chooses the bins.
        for (const each of [n * 2 ** exponent - 2 * n, ticks]) {
          latencies.during(each, n)[n]++;
          single.add(each / n, n);
        }
        latencies.flush();
        assert.deepEqual(together.entries(), single.entries(), `${ticks} ticks, ${n} tokens`);
      }
    }
  }
});
