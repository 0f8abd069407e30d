import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import type { ServingConfig } from '../cluster/serving-config.ts';
import { chromeTrace } from '../reporting/reporting.ts';
import { summarize } from '../statistics/summary.ts';
import type { Trace } from '../traces/trace.ts';
import { drawPriorities } from './priorities.ts';
import { simulateCluster } from './simulate-cluster.ts';
import { simulateTrace } from './simulate-trace.ts';
import type { SimulatedSpan } from './simulation-run.ts';

const requests = 3000;
const trace: Trace = {
  source: 'test',
  arrivalMs: Float64Array.from({ length: requests }, (_, i) => i * 100),
  inputTokens: Int32Array.from({ length: requests }, (_, i) => 100 + (i % 9) * 150),
  outputTokens: Int32Array.from({ length: requests }, (_, i) => 2 + (i % 7) * 20),
};
const config: ServingConfig = {
  maxNumSeqs: 64,
  kvBudgetFraction: 1,
  speculationDepth: 0,
  weights: 'FP16',
  split: false,
  schedulingPolicy: 'fcfs',
};
const prefixCaching = true;

describe('a trace served by two GPUs', () => {
  it('is served as by two replicas in turns while nothing changes', () => {
    const cluster = simulateCluster(trace, { profile, config, prefixCaching });
    const replicas = simulateTrace(trace, { profile, replicas: 2, maxNumSeqs: 64 });
    const byId = (run: typeof cluster) => {
      const e2eMs = new Float64Array(requests);
      for (const [i, id] of run.ids.entries()) e2eMs[id] = run.e2eMs[i];
      return e2eMs;
    };
    assert.equal(cluster.completed, requests);
    assert.deepEqual(byId(cluster), byId(replicas));
    assert.deepEqual(cluster.counters, replicas.counters);
    assert.deepEqual(cluster.events, []);
  });

  it('has steadier decodes when they are split from the prefills', () => {
    const itlP99Ms = (split: boolean) =>
      simulateCluster(trace, { profile, config: { ...config, split } }).itlP99Ms;
    assert.ok(itlP99Ms(true) < 0.8 * itlP99Ms(false), `${itlP99Ms(true)} ${itlP99Ms(false)}`);
  });

  it('pays for new weights with a reload that its requests wait for', () => {
    const run = simulateCluster(trace, {
      profile,
      config,
      changes: [{ atMs: 60_000, config: { weights: 'INT8' } }],
    });
    assert.deepEqual(run.events.map(({ kind, replica }) => `${kind} ${replica}`).sort(), [
      'reload 0',
      'reload 1',
    ]);
    for (const { atMs } of run.events) assert.ok(atMs >= 60_000 && atMs < 61_000, String(atMs));
    assert.equal(run.completed, requests);
    assert.ok(Math.max(...run.ttftMs) > 0.9 * 1000 * profile.reloadSeconds);
  });

  it('restarts for want of memory when a tenant takes what the pool holds', () => {
    const run = simulateCluster(trace, {
      profile,
      config,
      changes: [
        { atMs: 200_000, tenantGiB: 0 },
        { atMs: 100_000, tenantGiB: 20 },
      ],
    });
    assert.deepEqual(
      run.events.map(({ kind }) => kind),
      ['oom', 'oom'],
    );
    assert.equal(run.completed, requests);
    assert.ok(run.events.every(({ atMs }) => atMs >= 100_000 && atMs < 101_000));
  });

  it('drains before it is split, and shows it in the export for Perfetto', () => {
    const spans: SimulatedSpan[] = [];
    const run = simulateCluster(trace, {
      profile,
      config,
      changes: [{ atMs: 30_000, config: { split: true } }],
      onIterations: (span) => spans.push(span),
    });
    assert.deepEqual(
      new Set(run.events.map(({ kind }) => kind)),
      new Set(['drain_started', 'drain_finished']),
    );
    const { traceEvents } = JSON.parse([...chromeTrace(trace, run, spans)].join(''));
    const instants = traceEvents.filter(({ ph }: { ph: string }) => ph === 'i');
    assert.equal(instants.length, run.events.length);
    assert.ok(spans.some(({ replica }) => replica === 1));
  });

  it('refuses changes that cannot be', () => {
    const change = (wrong: object) => () =>
      simulateCluster(trace, { profile, config, changes: [{ atMs: 0, ...wrong }] });
    for (const wrong of [{ atMs: -1 }, { atMs: Number.NaN }, { tenantGiB: -1 }, { tenantGiB: 41 }]) {
      assert.throws(change(wrong), { name: 'SimulatorError', code: 'SIMULATION_OPTION' });
    }
    assert.throws(change({ config: { maxNumSeqs: 0 } }), { code: 'ENGINE_CONFIG', field: 'maxNumSeqs' });
    assert.throws(change({ config: { weights: 'INT4' } }), { code: 'PROFILE_VARIANT' });
  });
});

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
    const run = simulateCluster(trace, {
      profile,
      config: { ...config, maxNumSeqs: 2, schedulingPolicy: 'priority' },
      priorities,
    });
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
