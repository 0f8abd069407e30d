import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ServingConfig } from '../src/cluster/cluster.ts';
import { Cluster } from '../src/cluster/cluster.ts';
import { TICKS_PER_MS, TICKS_PER_S } from '../src/engine/ticks.ts';
import { usedGiB } from '../src/profiles/kv-pool.ts';
import { fixtureProfile } from './profile-fixture.ts';

const calm: ServingConfig = {
  maxNumSeqs: 64,
  kvBudgetFraction: 0.5,
  speculationDepth: 0,
  weights: 'FP16',
  split: false,
  schedulingPolicy: 'fcfs',
};

const serving = fc.record<ServingConfig>({
  maxNumSeqs: fc.integer({ min: 1, max: 128 }),
  kvBudgetFraction: fc.double({ min: 0.02, max: 1, noNaN: true }),
  speculationDepth: fc.integer({ min: 0, max: 8 }),
  weights: fc.constantFrom('FP16' as const, 'INT8' as const),
  split: fc.boolean(),
  schedulingPolicy: fc.constantFrom('fcfs' as const, 'priority' as const),
});

/** Submits `perSecond` equal requests a second over `seconds` from tick `from`; answers how many. */
function load(cluster: Cluster, from: number, seconds: number, perSecond: number, firstId = 0): number {
  const requests = Math.round(seconds * perSecond);
  for (let i = 0; i < requests; i++) {
    const arrival = from + Math.round((i / perSecond) * TICKS_PER_S);
    cluster.submit({
      id: firstId + i,
      arrival,
      input: 200 + (i % 7) * 40,
      output: 40 + (i % 5) * 30,
      priority: i % 3,
    });
  }
  return requests;
}

function latencies(cluster: Cluster): { ttft: number[]; tpot: number[] } {
  const ttft: number[] = [];
  const tpot: number[] = [];
  for (const { completions } of cluster.engines) {
    for (let i = 0; i < completions.count; i++) {
      ttft.push((completions.firstTokens[i] - completions.arrivals[i]) / TICKS_PER_MS);
      tpot.push(
        (completions.lastTokens[i] - completions.firstTokens[i]) /
          (completions.outputs[i] - 1) /
          TICKS_PER_MS,
      );
    }
  }
  return { ttft, tpot };
}

function accounted(cluster: Cluster): number {
  let sum = 0;
  for (const engine of cluster.engines) {
    sum += engine.counters.completed + engine.counters.rejected;
    sum += engine.runningCount + engine.waitingCount + engine.futureCount;
  }
  return sum;
}

test('no request is lost or made up by any change of settings', () => {
  const window = fc.record({
    config: serving,
    tenantGiB: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 20, noNaN: true })),
    perSecond: fc.integer({ min: 0, max: 30 }),
  });
  fc.assert(
    fc.property(fc.array(window, { minLength: 1, maxLength: 10 }), (windows) => {
      const cluster = new Cluster(calm, { profile: fixtureProfile });
      let submitted = 0;
      let limit = 0;
      for (const { config, tenantGiB, perSecond } of windows) {
        cluster.configure(config, tenantGiB);
        submitted += load(cluster, limit, 5, perSecond, submitted);
        limit += 5 * TICKS_PER_S;
        cluster.runUntil(limit);
        assert.equal(accounted(cluster), submitted);
        for (const gpu of [0, 1]) assert.ok(usedGiB(cluster.memoryOf(gpu)) <= 40 + 1e-9);
      }
      cluster.runUntil(limit + 100_000 * TICKS_PER_S);
      const done = cluster.engines.reduce((sum, e) => sum + e.counters.completed + e.counters.rejected, 0);
      assert.equal(done, submitted);
      assert.equal(cluster.kvBlocksUsed, 0);
    }),
    { numRuns: 150 },
  );
});

test('a restored snapshot goes on exactly as the original does', () => {
  fc.assert(
    fc.property(serving, serving, fc.integer({ min: 1, max: 30 }), (first, second, perSecond) => {
      const original = new Cluster(first, { profile: fixtureProfile });
      load(original, 0, 20, perSecond);
      original.runUntil(5 * TICKS_PER_S);
      original.configure(second);
      original.runUntil(9 * TICKS_PER_S);
      const snapshot = original.snapshot();
      const copy = new Cluster(calm, { profile: fixtureProfile });
      copy.restore(snapshot);
      original.clearLogs();
      for (const cluster of [original, copy]) cluster.runUntil(60 * TICKS_PER_S);
      assert.deepEqual(latencies(copy), latencies(original));
      assert.deepEqual(copy.events, original.events);
      assert.equal(copy.now, original.now);
    }),
    { numRuns: 100 },
  );
});

test('a split steadies the decodes: the worst TPOT falls when prompts are long', () => {
  const worst = (split: boolean) => {
    const cluster = new Cluster({ ...calm, split, kvBudgetFraction: 1 }, { profile: fixtureProfile });
    for (let i = 0; i < 60; i++) {
      cluster.submit({ id: i, arrival: i * 400 * TICKS_PER_MS, input: i % 4 === 0 ? 6000 : 100, output: 60 });
    }
    cluster.runUntil(200 * TICKS_PER_S);
    return Math.max(...latencies(cluster).tpot);
  };
  assert.ok(worst(true) < 0.8 * worst(false), `${worst(true)} ms split, ${worst(false)} ms mixed`);
});

test('a change of split finishes what runs first and says so', () => {
  const cluster = new Cluster(calm, { profile: fixtureProfile });
  const submitted = load(cluster, 0, 20, 10);
  cluster.runUntil(5 * TICKS_PER_S);
  cluster.configure({ ...calm, split: true });
  cluster.runUntil(20 * TICKS_PER_S);
  assert.deepEqual(
    cluster.events.map((event) => event.kind),
    ['drain_started', 'drain_started', 'drain_finished', 'drain_finished'],
  );
  assert.equal(cluster.roleOf(0), 'prefill');
  const preempted = cluster.engines.reduce((sum, engine) => sum + engine.counters.preemptions, 0);
  assert.equal(preempted, 0);
  cluster.runUntil(200 * TICKS_PER_S);
  assert.equal(latencies(cluster).ttft.length, submitted);
});

test('new weights cost a reload in which nothing is served', () => {
  const cluster = new Cluster(calm, { profile: fixtureProfile });
  load(cluster, 0, 20, 10);
  cluster.runUntil(5 * TICKS_PER_S);
  cluster.clearLogs();
  cluster.configure({ ...calm, weights: 'INT8' });
  cluster.runUntil(9.9 * TICKS_PER_S);
  assert.equal(cluster.engines[0].counters.outputTokens + cluster.engines[1].counters.outputTokens, 0);
  assert.ok(cluster.engines[0].counters.preemptions > 0);
  cluster.runUntil(15 * TICKS_PER_S);
  assert.ok(cluster.engines[0].counters.outputTokens > 0);
});

test('a tenant that outgrows the GPU restarts its engine with a pool that fits', () => {
  const cluster = new Cluster({ ...calm, kvBudgetFraction: 1 }, { profile: fixtureProfile });
  load(cluster, 0, 10, 10);
  cluster.runUntil(5 * TICKS_PER_S);
  cluster.configure(cluster.servingConfig, 10);
  assert.deepEqual(
    cluster.events.map((event) => event.kind),
    ['oom', 'oom'],
  );
  assert.ok(usedGiB(cluster.memoryOf(0)) <= 40);
  assert.ok(usedGiB(cluster.memoryOf(0)) > 39.9);
});

test('with priority the urgent class waits less than it does in order of arrival', () => {
  const meanUrgentTtft = (schedulingPolicy: 'fcfs' | 'priority') => {
    const cluster = new Cluster({ ...calm, maxNumSeqs: 8, schedulingPolicy }, { profile: fixtureProfile });
    load(cluster, 0, 20, 20);
    cluster.runUntil(500 * TICKS_PER_S);
    let sum = 0;
    let urgent = 0;
    for (const { completions } of cluster.engines) {
      for (let i = 0; i < completions.count; i++) {
        if (completions.ids[i] % 3 !== 0) continue;
        sum += completions.firstTokens[i] - completions.arrivals[i];
        urgent++;
      }
    }
    return sum / urgent / TICKS_PER_MS;
  };
  assert.ok(meanUrgentTtft('priority') < 0.3 * meanUrgentTtft('fcfs'));
});
