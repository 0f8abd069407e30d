import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Engine } from './engine.ts';
import { TICKS_PER_MS } from './ticks.ts';

/** Every iteration takes 10 ms. */
const config = {
  law: {
    baseUs: 10_000,
    weightReadUs: 0,
    perTokenUs: 0,
    perDecodeSequenceUs: 0,
    perContextTokenNs: 0,
    perPrefillAttentionNs: 0,
  },
  maxNumSeqs: 8,
  kvBlocks: 1000,
  schedulingPolicy: 'fcfs' as const,
  speculationDepth: 0,
  speculation: null,
  survival: [],
};

/** TTFT of a request of one token of output that arrives at `arrivalMs` beside one that decodes from 0 ms on, ms. */
function ttftMs(arrivalMs: number, asyncScheduling: boolean): number {
  const engine = new Engine(config, { asyncScheduling });
  engine.submit({ id: 0, arrival: 0, input: 10, output: 1000 });
  engine.submit({ id: 1, arrival: arrivalMs * TICKS_PER_MS, input: 10, output: 1 });
  engine.runUntil(Number.POSITIVE_INFINITY);
  const { ids, lastTokens } = engine.completions;
  return lastTokens[ids.indexOf(1)] / TICKS_PER_MS - arrivalMs;
}

it('a request waits for one more iteration when iterations are scheduled ahead, unless the engine is idle', () => {
  // The iteration from 500 to 510 ms runs when the request arrives; the next is scheduled already.
  assert.equal(ttftMs(503, false), 7 + 10);
  assert.equal(ttftMs(503, true), 7 + 10 + 10);
  assert.equal(ttftMs(0, true), 10);
  assert.equal(ttftMs(20_000, true), 10);
});

it('forgets a waiting request that fits no longer and is aborted', () => {
  const engine = new Engine({ ...config, maxNumSeqs: 1 }, { asyncScheduling: true });
  engine.submit({ id: 0, arrival: 0, input: 100, output: 50 });
  engine.submit({ id: 1, arrival: 0, input: 800, output: 50 });
  engine.runUntil(205 * TICKS_PER_MS);
  engine.configure({ ...config, maxNumSeqs: 2, kvBlocks: 20 });
  assert.equal(engine.abort(1), true);
  engine.submit({ id: 2, arrival: 0, input: 90, output: 50 });
  engine.runUntil(Number.POSITIVE_INFINITY);
  const { ids, count } = engine.completions;
  assert.deepEqual([...ids.slice(0, count)], [0, 2]);
  assert.deepEqual([[...engine.rejections], engine.kvBlocksUsed, engine.waitingCount], [[], 0, 0]);
});
