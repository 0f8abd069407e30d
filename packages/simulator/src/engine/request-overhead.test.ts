import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Engine } from './engine.ts';
import { RequestOverhead } from './request-overhead.ts';
import { msFromTicks, TICKS_PER_MS, ticksFromMs } from './ticks.ts';

const REQUESTS = 20_000;

function overheadOf(ms: number, jitter: number, perTokenUs: number, seed: number): RequestOverhead {
  const given = { requestOverheadMs: ms, requestOverheadJitter: jitter };
  return new RequestOverhead({ ...given, requestOverheadPerTokenUs: perTokenUs, seed });
}

function overheadsMs(jitter: number): number[] {
  const overhead = overheadOf(20, jitter, 0, 7);
  return Array.from({ length: REQUESTS }, (_, id) => msFromTicks(overhead.ticks(id, 1)));
}

describe('the overhead of a request', () => {
  it('is the same for all without jitter', () => {
    assert.deepEqual(new Set(overheadsMs(0)), new Set([20]));
  });

  it('varies by its share around the same mean, and never falls below what is constant', () => {
    const overheads = overheadsMs(0.4);
    const mean = overheads.reduce((sum, each) => sum + each, 0) / REQUESTS;
    assert.ok(Math.abs(mean - 20) < 0.2, String(mean));
    assert.ok(Math.min(...overheads) >= 12);
    const p99 = overheads.sort((a, b) => a - b)[REQUESTS * 0.99];
    assert.ok(Math.abs(p99 - (12 + 8 * Math.log(100))) < 2, String(p99));
  });

  it('grows with the prompt', () => {
    const overhead = overheadOf(20, 0, 8, 7);
    assert.deepEqual(
      [1, 10_000].map((input) => msFromTicks(overhead.ticks(0, input))),
      [20.008, 100],
    );
  });

  it('belongs to the seed and the request', () => {
    const other = overheadOf(20, 0.4, 0, 8);
    assert.deepEqual(overheadsMs(0.4), overheadsMs(0.4));
    assert.notEqual(msFromTicks(other.ticks(1, 1)), overheadsMs(0.4)[1]);
  });

  it('lets a request overtake another on its way to the scheduler', () => {
    const law = {
      baseUs: 1000,
      weightReadUs: 1000,
      perTokenUs: 1,
      perDecodeSequenceUs: 1,
      perContextTokenNs: 1,
      perPrefillAttentionNs: 0,
    };
    const engine = new Engine(
      {
        law,
        maxNumSeqs: 1,
        kvBlocks: 1000,
        schedulingPolicy: 'fcfs',
        speculationDepth: 0,
        speculation: null,
        survival: [],
      },
      { requestOverheadMs: 50, requestOverheadJitter: 1, requestOverheadPerTokenUs: 3 },
    );
    for (let id = 0; id < 50; id++) engine.submit({ id, arrival: id * TICKS_PER_MS, input: 10, output: 2 });
    engine.runUntil(Number.POSITIVE_INFINITY);
    const { ids, scheduled, count } = engine.completions;
    assert.equal(count, 50);
    const overhead = overheadOf(50, 1, 3, 0);
    const seen = Array.from({ length: 50 }, (_, id) => ticksFromMs(id) + overhead.ticks(id, 10));
    const expected = seen.map((_, id) => id).sort((a, b) => seen[a] - seen[b]);
    assert.deepEqual([...ids.subarray(0, 50)], expected);
    assert.notDeepEqual(
      expected,
      expected.toSorted((a, b) => a - b),
    );
    for (let i = 0; i < 50; i++) assert.ok(scheduled[i] >= seen[ids[i]]);
  });
});
