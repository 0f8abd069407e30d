import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RequestGate } from './play-window.ts';

describe('the gate of requests', () => {
  it('never lets in more than its limit, the most urgent first and equals in order of arrival', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 30 }),
        async (limit, urgencies) => {
          const gate = new RequestGate(limit);
          const entered: number[] = [];
          const visits = urgencies.map(async (urgency, id) => {
            await gate.enter(urgency);
            entered.push(id);
            assert.ok(gate.insideCount <= limit);
          });
          await new Promise(setImmediate);
          const atOnce = Math.min(limit, urgencies.length);
          assert.equal(gate.waitingCount, urgencies.length - atOnce);
          for (let i = 0; i < urgencies.length; i++) {
            gate.leave();
            await new Promise(setImmediate);
          }
          await Promise.all(visits);
          assert.deepEqual([gate.insideCount, gate.waitingCount], [0, 0]);
          const later = urgencies.map((_, id) => id).slice(atOnce);
          const expected = later.toSorted((a, b) => urgencies[a] - urgencies[b] || a - b);
          assert.deepEqual(entered.slice(atOnce), expected);
        },
      ),
      { numRuns: 50 },
    );
  });
});
