import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import { summarize } from '../statistics/summary.ts';
import { parseTrace } from '../traces/parse-trace.ts';
import type { Trace } from '../traces/trace.ts';
import { drawAdapters, drawPriorities } from './priorities.ts';
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

describe('drawn adapters', () => {
  it('have their shares, and one for prompts that begin alike and for a conversation', () => {
    const { names, of } = drawAdapters(trace, [1, 2, 1], 3).adapters!;
    assert.deepEqual(names, ['adapter-1', 'adapter-2']);
    for (const [adapter, share] of [0.25, 0.5, 0.25].entries())
      assert.ok(Math.abs(of.filter((each) => each === adapter).length / requests - share) < 0.03);
    const offsets = Int32Array.from({ length: requests + 1 }, (_, i) => i);
    const ids = Float64Array.from({ length: requests }, (_, i) => i % 9);
    const alike = drawAdapters({ ...trace, prefixBlocks: { blockTokens: 16, ids, offsets } }, [1, 1, 1], 3);
    assert.ok(alike.adapters!.of.every((each, i, all) => each === all[i % 9]));
    const previous = Int32Array.from({ length: requests }, (_, i) => i - 9).map((i) => Math.max(-1, i));
    const turns = drawAdapters(
      { ...trace, followUps: { previous, thinkMs: new Float64Array(requests) } },
      [1, 1],
      3,
    );
    assert.ok(turns.adapters!.of.every((each, i, all) => each === all[i % 9]));
  });

  it('are refused where no request would have one or the base model', () => {
    for (const shares of [[], [0, 0], [-1, 2]]) {
      assert.throws(() => drawAdapters(trace, shares, 0), { code: 'SIMULATION_OPTION' });
    }
  });

  it('share no KV of equal text, and wait for others where few fit an iteration', () => {
    const text = (adapter: string) =>
      `{"timestamp": 0, "input_length": 1024, "output_length": 20, "hash_ids": [1, 2], "adapter": "${adapter}"}`;
    const run = (adapters: readonly string[], maxLoras: number) =>
      simulateTrace(parseTrace(adapters.map(text).join('\n'), 'x.jsonl'), {
        profile: { ...profile, engine: { ...profile.engine, maxLoras } },
        maxNumBatchedTokens: 1024,
      });
    assert.ok(run(['sql', 'sql'], 2).counters.cachedTokens > 0);
    assert.equal(run(['sql', 'chat'], 2).counters.cachedTokens, 0);
    const alone = run(['sql', 'chat'], 1);
    // The second begins when the first has ended.
    assert.ok(
      alone.queueMs[1] > alone.e2eMs[0] * 0.99 && run(['sql', 'chat'], 2).queueMs[1] < alone.queueMs[1],
    );
  });
});
