import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AcceptanceSampler } from './acceptance-sampler.ts';

/** Probabilities that lie so close together that many of a draw's bits decide between them, or are equal. */
const crowded = fc
  .record({ from: fc.double({ min: 0, max: 1, noNaN: true }), steps: fc.array(fc.nat({ max: 3 })) })
  .map(({ from, steps }) => steps.map((step, k) => Math.max(0, from - k * step * 2 ** -20)));

const survival = fc.oneof(fc.array(fc.double({ min: 0, max: 1, noNaN: true })), crowded);

test('emits one token more than are accepted, at every step of every request', () => {
  fc.assert(
    fc.property(fc.nat(), survival, fc.nat(), fc.nat(), (seed, probabilities, id, firstStep) => {
      const sampler = new AcceptanceSampler(seed, probabilities);
      const drafts = probabilities.length;
      const key = sampler.requestKey(id);
      const tokens = new Uint8Array(600);
      sampler.emissions(drafts).draw(key, firstStep, tokens, 50, 550);
      tokens.forEach((emitted, at) => {
        const drawn = at >= 50 && at < 550;
        const expected = drawn ? 1 + sampler.accepted(key, firstStep + at - 50, drafts) : 0;
        assert.equal(emitted, expected, `entry ${at}`);
      });
    }),
    { numRuns: 200 },
  );
});

test('emits what as many drafts as asked for allow', () => {
  const sampler = new AcceptanceSampler(1, [1, 1, 1, 0.5]);
  const tokens = new Uint8Array(100);
  sampler.emissions(2).draw(sampler.requestKey(7), 0, tokens, 0, 100);
  assert.deepEqual(new Set(tokens), new Set([3]));
  sampler.emissions(4).draw(sampler.requestKey(7), 0, tokens, 0, 100);
  assert.deepEqual(new Set(tokens), new Set([4, 5]));
});
