import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import { summarize } from '../statistics/summary.ts';
import type { Trace } from '../traces/trace.ts';
import { drawPriorities } from './priorities.ts';
import { simulateTrace } from './simulate-trace.ts';

const requests = 3000;
const trace: Trace = {
  source: 'test',
  arrivalMs: Float64Array.from({ length: requests }, (_, i) => i * 100),
  inputTokens: Int32Array.from({ length: requests }, (_, i) => 100 + (i % 9) * 150),
  outputTokens: Int32Array.from({ length: requests }, (_, i) => 2 + (i % 7) * 20),
};
describe('priority classes', () => {
  it('are drawn in proportion to their shares, the same for the same seed', () => {
    const priorities = drawPriorities(10_000, [1, 2, 1], 3);
    const counts = [0, 1, 2].map((each) => priorities.filter((priority) => priority === each).length);
    for (const [i, share] of [2500, 5000, 2500].entries()) assert.ok(Math.abs(counts[i] - share) < 150);
    assert.deepEqual(drawPriorities(10_000, [1, 2, 1], 3), priorities);
    assert.notDeepEqual(drawPriorities(10_000, [1, 2, 1], 4), priorities);
  });

  it('let the urgent wait less under the priority policy', () => {
    const priorities = drawPriorities(requests, [1, 1], 0);
    const served = { profile, replicas: 2, maxNumSeqs: 2, schedulingPolicy: 'priority' as const };
    const run = simulateTrace(trace, { ...served, priorities });
    const waits = (priority: number) =>
      summarize(run.queueMs.filter((_, i) => priorities[run.ids[i]] === priority)).mean;
    assert.ok(waits(0) < 0.5 * waits(1), `${waits(0)} ${waits(1)}`);
  });

  it('are refused when they are none', () => {
    for (const shares of [[], [0, 0], [-1, 2], [Number.NaN], new Array(9).fill(1)]) {
      assert.throws(() => drawPriorities(10, shares, 0), { code: 'SIMULATION_OPTION' });
    }
  });
});
