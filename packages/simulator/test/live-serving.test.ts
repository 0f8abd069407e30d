import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ServingConfig } from '../src/cluster/cluster.ts';
import { Cluster } from '../src/cluster/cluster.ts';
import { Engine } from '../src/engine/engine.ts';
import { TICKS_PER_MS } from '../src/engine/ticks.ts';
import { weightVariant } from '../src/profiles/kv-pool.ts';
import { fixtureProfile } from './profile-fixture.ts';

const speculation = fixtureProfile.speculation;
const survival = [0.7, 0.5, 0.3, 0.2];
const law = weightVariant(fixtureProfile, 'FP16').law;

const serving = fc.record<ServingConfig>({
  maxNumSeqs: fc.integer({ min: 1, max: 32 }),
  kvBudgetFraction: fc.double({ min: 0.01, max: 0.1, noNaN: true }),
  speculationDepth: fc.integer({ min: 0, max: 3 }),
  weights: fc.constantFrom('FP16' as const, 'INT8' as const),
  split: fc.boolean(),
  schedulingPolicy: fc.constantFrom('fcfs' as const, 'priority' as const),
});

const load = fc.array(
  fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 })),
    input: fc.integer({ min: 1, max: 400 }),
    output: fc.integer({ min: 1, max: 80 }),
    priority: fc.integer({ min: 0, max: 2 }),
    isAborted: fc.boolean(),
  }),
  { minLength: 1, maxLength: 40, size: 'max' },
);

function newEngine(maxNumSeqs: number, kvBlocks: number, speculationDepth: number): Engine {
  const config = { law, maxNumSeqs, kvBlocks, speculationDepth, speculation, survival };
  return new Engine({ ...config, schedulingPolicy: 'fcfs' }, { prefixCaching: true });
}

test('an engine taken iteration by iteration ends as the one that runs to the end, and counts every token', () => {
  fc.assert(
    fc.property(
      load,
      fc.integer({ min: 1, max: 24 }),
      fc.integer({ min: 6, max: 100 }),
      fc.integer({ min: 0, max: 3 }),
      (requests, cap, blocks, depth) => {
        const [stepped, whole] = [newEngine(cap, blocks, depth), newEngine(cap, blocks, depth)];
        let arrival = 0;
        requests.forEach(({ gapMs, input, output }, id) => {
          arrival += gapMs * TICKS_PER_MS;
          for (const engine of [stepped, whole]) engine.submit({ id, arrival, input, output });
        });
        whole.runUntil(Number.POSITIVE_INFINITY);
        const emittedBy = new Map<number, number>();
        while (stepped.nextIteration < Number.POSITIVE_INFINITY) {
          const { iterations } = stepped.counters;
          stepped.runUntil(stepped.nextIteration + 1);
          assert.ok(stepped.counters.iterations <= iterations + 1);
          stepped.forEachRunning((id, _arrival, _firstToken, _blocks, emitted) => {
            assert.ok(emitted >= (emittedBy.get(id) ?? 0));
            emittedBy.set(id, emitted);
          });
          const running = [...emittedBy.values()].reduce((sum, tokens) => sum + tokens, 0);
          let finished = 0;
          for (let i = 0; i < stepped.completions.count; i++) {
            emittedBy.delete(stepped.completions.ids[i]);
            finished += stepped.completions.outputs[i];
          }
          if (finished === 0) assert.equal(running, stepped.counters.outputTokens);
        }
        const { count, ids, firstTokens, lastTokens } = whole.completions;
        assert.equal(stepped.completions.count, count);
        for (const [ours, theirs] of [
          [stepped.completions.ids, ids],
          [stepped.completions.firstTokens, firstTokens],
          [stepped.completions.lastTokens, lastTokens],
        ]) {
          assert.deepEqual(ours!.subarray(0, count), theirs!.subarray(0, count));
        }
      },
    ),
    { numRuns: 150 },
  );
});

test('requests given up at any moment free what they hold, and the others are served', () => {
  fc.assert(
    fc.property(load, serving, serving, fc.integer({ min: 0, max: 60 }), (requests, first, second, turn) => {
      const cluster = new Cluster(first, { profile: fixtureProfile });
      let arrival = 0;
      requests.forEach(({ gapMs, input, output, priority }, id) => {
        arrival += gapMs * TICKS_PER_MS;
        cluster.submit({ id, arrival, input, output, priority });
      });
      const giveUp = new Set(requests.flatMap(({ isAborted }, id) => (isAborted ? [id] : [])));
      let served = 0;
      let steps = 0;
      while (cluster.nextIteration < Number.POSITIVE_INFINITY) {
        cluster.runUntil(cluster.nextIteration + 1);
        steps++;
        if (steps === turn) cluster.configure(second);
        if (steps % 7 === 0) {
          for (const id of giveUp) {
            if (cluster.abort(id)) assert.equal(cluster.abort(id), false);
            giveUp.delete(id);
            break;
          }
        }
        if (steps % 50 === 0) cluster.shiftClock(cluster.now);
        for (const engine of cluster.engines) {
          served += engine.counters.completed + engine.counters.rejected;
          engine.clearLogs();
        }
        assert.ok(steps < 100_000, 'the cluster gets nowhere');
      }
      assert.equal(cluster.kvBlocksUsed, 0);
      assert.equal(cluster.runningCount + cluster.waitingCount, 0);
      const kept = requests.filter(({ isAborted }) => !isAborted).length;
      assert.ok(served >= kept && served <= requests.length, `${served} of ${requests.length}, ${kept} kept`);
    }),
    { numRuns: 150 },
  );
});
