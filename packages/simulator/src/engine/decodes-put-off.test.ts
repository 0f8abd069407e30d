import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { fixtureProfile } from '../../test/profile-fixture.ts';
import { Engine } from './engine.ts';
import { TICKS_PER_MS } from './ticks.ts';

const { law } = fixtureProfile.weights.FP16!;

interface Step {
  readonly ms: number;
  readonly request?: { readonly input: number; readonly output: number };
  readonly aborted?: number;
}

function outcome(engine: Engine) {
  const { ids, firstTokens, lastTokens, count } = engine.completions;
  return {
    ...{ now: engine.now, used: engine.kvBlocksUsed, counters: { ...engine.counters } },
    latencies: engine.interTokenLatency.entries(),
    completed: [ids, firstTokens, lastTokens].map((column) => [...column.slice(0, count)]),
  };
}

it('an engine that nobody asks between short runs comes to what one comes to that is asked after each', () => {
  const ms = fc.integer({ min: 1, max: 100 });
  const request = fc.record({
    input: fc.integer({ min: 1, max: 300 }),
    output: fc.integer({ min: 1, max: 60 }),
  });
  const change = fc.record({ ms, request, aborted: fc.nat(20) }, { requiredKeys: ['ms'] });
  const steps = fc.array(fc.oneof({ weight: 5, arbitrary: fc.record({ ms }) }, change), { maxLength: 60 });
  const options = fc.record({ asyncScheduling: fc.boolean(), prefixCaching: fc.boolean() });
  fc.assert(
    fc.property(steps, options, fc.integer({ min: 22, max: 60 }), (steps: readonly Step[], how, kvBlocks) => {
      const config = { law, maxNumSeqs: 4, kvBlocks, schedulingPolicy: 'fcfs' as const };
      const engines = [0, 1].map(() => {
        return new Engine({ ...config, speculationDepth: 0, speculation: null, survival: [] }, how);
      });
      let tick = 0;
      for (const [id, { ms, request, aborted }] of steps.entries()) {
        for (const engine of engines) {
          if (request !== undefined) engine.submit({ id, arrival: tick, ...request });
          if (aborted !== undefined) engine.abort(aborted);
          engine.runUntil(tick + ms * TICKS_PER_MS);
        }
        outcome(engines[1]);
        const [seen, other] = engines.map((engine) => [engine.runningCount, engine.waitingCount]);
        assert.deepEqual(seen, other);
        tick += ms * TICKS_PER_MS;
      }
      assert.deepEqual(outcome(engines[0]), outcome(engines[1]));
    }),
  );
});
