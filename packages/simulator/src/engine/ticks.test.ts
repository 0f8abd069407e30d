import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { wholeTicks } from './ticks.ts';

test('durations are rounded as Math.round rounds them', () => {
  const halves = fc.integer({ min: 1, max: 2 ** 50 }).map((whole) => whole + 0.5);
  const durations = fc.double({ min: 1, max: 2 ** 52 - 1, noNaN: true });
  fc.assert(
    fc.property(fc.oneof(durations, halves), (ticks) => {
      for (const near of [ticks, ticks * (1 - 2 ** -53), ticks * (1 + 2 ** -52)]) {
        assert.equal(wholeTicks(near), Math.round(near));
      }
    }),
    { numRuns: 2000 },
  );
  assert.equal(wholeTicks(0), 0);
});
