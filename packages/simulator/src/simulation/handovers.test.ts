import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import { ReferenceEngine } from '../../test/reference-engine.ts';
import { TransferLink } from '../cluster/transfer-link.ts';
import type { RequestProgress } from '../engine/engine-log.ts';
import { msFromTicks, ticksFromMs } from '../engine/ticks.ts';
import { engineOptionsOf } from '../profiles/engine-options.ts';
import { SimulatorError } from '../simulator-error.ts';
import type { Trace } from '../traces/trace.ts';
import { simulateTrace } from './simulate-trace.ts';
import type { SimulationOptions } from './simulation-options.ts';
import type { SimulationRun } from './simulation-run.ts';

const requests = 600;
const trace: Trace = {
  source: 'test',
  arrivalMs: Float64Array.from({ length: requests }, (_, i) => i * 90 + (i % 5) * 7),
  inputTokens: Int32Array.from({ length: requests }, (_, i) => 100 + ((i * 37) % 11) * 250),
  outputTokens: Int32Array.from({ length: requests }, (_, i) => 1 + ((i * 13) % 7) * 25),
};
const serve = (options: Partial<SimulationOptions>) =>
  simulateTrace(trace, { profile, maxNumSeqs: 64, ...options });

/** First and last token of each request, ms after its arrival. */
function latencies({ ids, ttftMs, e2eMs }: SimulationRun): [number, number][] {
  const rows: [number, number][] = [];
  for (const [i, id] of ids.entries()) rows[id] = [ttftMs[i], e2eMs[i]];
  return rows;
}

/** The same of plain engines that take requests in turns, each over a link of its own. */
function plainLatencies(prefill: number, decode: number, kvBlocks: number): [number, number][] {
  const config = {
    law: profile.weights.FP16!.law,
    ...{ maxNumSeqs: 64, kvBlocks, schedulingPolicy: 'fcfs' as const, speculationDepth: 0 },
    ...{ speculation: null, survival: [] },
  };
  const {
    asyncScheduling = false,
    blockTokens = 16,
    requestOverheadMs = 0,
  } = engineOptionsOf(profile, false);
  const engineOf = (role: 'mixed' | 'prefill') =>
    new ReferenceEngine(config, {
      ...{ blockTokens, asyncScheduling, role, maxNumBatchedTokens: 2048, seed: 0, prefixCaching: true },
      ...{ requestOverheadMs, requestOverheadJitter: 0 },
    });
  const first = Array.from({ length: prefill }, () => engineOf('prefill'));
  const second = Array.from({ length: decode }, () => engineOf('mixed'));
  for (let id = 0; id < requests; id++) {
    const [input, output] = [trace.inputTokens[id], trace.outputTokens[id]];
    const arrival = ticksFromMs(trace.arrivalMs[id]);
    first[id % prefill].submit({ id, arrival, input, output, priority: 0, prefix: null });
  }
  const sent: { readonly request: RequestProgress; readonly ready: number }[] = [];
  for (const engine of first) {
    engine.runUntil(Number.POSITIVE_INFINITY);
    const link = new TransferLink(profile);
    for (const request of engine.handovers)
      sent.push({ request, ready: link.send(request.input, request.lastToken) });
  }
  sent.sort((a, b) => a.ready - b.ready || a.request.id - b.request.id);
  for (const [i, { request, ready }] of sent.entries()) second[i % decode].submitTransferred(request, ready);
  const rows: [number, number][] = [];
  for (const engine of [...first, ...second]) {
    engine.runUntil(Number.POSITIVE_INFINITY);
    for (const { id, firstToken, lastToken } of engine.completions) {
      const arrival = ticksFromMs(trace.arrivalMs[id]);
      rows[id] = [msFromTicks(firstToken - arrival), msFromTicks(lastToken - arrival)];
    }
  }
  return rows;
}

describe('engines that prefill for others', () => {
  for (const [prefill, decode] of [
    [1, 1],
    [2, 1],
    [1, 3],
    [3, 2],
  ]) {
    it(`serve as plain engines do, ${prefill} for ${decode}`, () => {
      const run = serve({ split: { prefill, decode }, kvBlocks: 900 });
      assert.equal(run.completed, requests);
      assert.deepEqual(latencies(run), plainLatencies(prefill, decode, 900));
    });
  }

  it('prefill sooner when there are more of them, and choose the least loaded for decoding', () => {
    const mean = (values: Float64Array) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const split = (prefill: number, decode: number, router: SimulationOptions['router']) =>
      serve({ split: { prefill, decode }, router, concurrency: 48 });
    const [one, three] = [split(1, 2, 'least_loaded'), split(3, 2, 'least_loaded')];
    assert.equal(one.completed, requests);
    assert.ok(mean(three.ttftMs) < 0.6 * mean(one.ttftMs), `${mean(three.ttftMs)} ${mean(one.ttftMs)}`);
    assert.notDeepEqual(latencies(three), latencies(split(3, 2, 'round_robin')));
  });

  it('are refused where they are none, or beside replicas', () => {
    assert.throws(
      () => serve({ split: { prefill: 0, decode: 1 } }),
      /`split.prefill` to be a whole number from 1/,
    );
    assert.throws(
      () => serve({ split: { prefill: 1, decode: 0 } }),
      /`split.decode` to be a whole number from 1/,
    );
    assert.throws(() => serve({ split: { prefill: 1, decode: 1 }, replicas: 2 }), SimulatorError);
  });
});
