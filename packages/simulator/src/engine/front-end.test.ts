import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LAW_OF_1_MS } from '../../test/recorded-load.ts';
import { Engine } from './engine.ts';
import type { EngineOptions } from './engine-config.ts';
import { msFromTicks, TICKS_PER_MS } from './ticks.ts';

const FRONT_END = { processes: 1, perRequestMs: 2, perPromptTokenUs: 100, perOutputTokenUs: 500 };

/** Times of [arrival, output tokens], each with ten prompt tokens, at iterations of 1 ms: ms, by request. */
function serve(
  requests: readonly (readonly [arrivalMs: number, output: number])[],
  options: EngineOptions,
  stops: readonly number[] = [],
): [scheduledMs: number, firstMs: number, lastMs: number][] {
  const engine = new Engine(
    {
      ...{ law: LAW_OF_1_MS, maxNumSeqs: 64, kvBlocks: 1000, schedulingPolicy: 'fcfs' },
      ...{ speculationDepth: 0, speculation: null, survival: [] },
    },
    options,
  );
  let submitted = 0;
  for (const stop of [...stops, Number.POSITIVE_INFINITY]) {
    for (; submitted < requests.length && requests[submitted][0] < stop; submitted++) {
      const [arrivalMs, output] = requests[submitted];
      engine.submit({ id: submitted, arrival: arrivalMs * TICKS_PER_MS, input: 10, output });
    }
    engine.runUntil(stop * TICKS_PER_MS);
  }
  const { ids, scheduled, firstTokens, lastTokens, count } = engine.completions;
  const times: [number, number, number][] = [];
  for (let i = 0; i < count; i++) {
    const [begun, first, last] = [scheduled[i], firstTokens[i], lastTokens[i]].map(msFromTicks);
    times[ids[i]] = [begun, first, last];
  }
  return times;
}

describe('a front end', () => {
  it('delays a request behind another, and tokens behind requests', () => {
    const options = { requestOverheadMs: 4, frontEnd: FRONT_END };
    // A request is 3 ms of work and a token half of one. The first request is at the scheduler after 4 ms, the second
    // begins at 3 ms. The first token comes at 5 ms and is streamed behind the second request, from 6 ms on; the next two
    // follow in turn. Nothing is left to do when the second request gets its tokens, at 8 and 9 ms.
    assert.deepEqual(
      serve(
        [
          [0, 3],
          [1, 2],
        ],
        options,
      ),
      [
        [4, 6.5, 7.5],
        [7, 8.5, 9.5],
      ],
    );
  });

  it('takes at least its work, where the overhead of a request is less', () => {
    assert.deepEqual(serve([[0, 1]], { requestOverheadMs: 1, frontEnd: FRONT_END }), [[3, 4.5, 4.5]]);
  });

  it('falls behind an engine that is faster than it streams, and catches up when the engine idles', () => {
    const frontEnd = { processes: 1, perRequestMs: 0, perPromptTokenUs: 0, perOutputTokenUs: 2000 };
    // Tokens at 1, 2, 3, 4 and 5 ms, each streamed for 2 ms. A request at 8 ms waits for the last of them, at 11 ms.
    assert.deepEqual(
      serve(
        [
          [0, 5],
          [8, 1],
          [20, 1],
        ],
        { frontEnd },
      ),
      [
        [0, 3, 11],
        [11, 14, 14],
        [20, 23, 23],
      ],
    );
  });

  it('gives the same times whenever the engine is asked', () => {
    const requests = Array.from({ length: 60 }, (_, i) => [i * 3.7, 1 + (i % 7)] as const);
    const stops = Array.from({ length: 120 }, (_, i) => i * 2);
    for (const processes of [1, 2]) {
      const options = { requestOverheadMs: 4, frontEnd: { ...FRONT_END, processes } };
      assert.deepEqual(serve(requests, options, stops), serve(requests, options));
    }
  });

  it('shares the work among its processes', () => {
    const requests = Array.from({ length: 400 }, (_, i) => [i * 2, 4] as const);
    const lateMs = (processes: number) =>
      serve(requests, { frontEnd: { ...FRONT_END, processes } }).map(
        ([, , last], i) => last - requests[i][0],
      );
    // One process has 5 ms of work for each request, every 2 ms; of four, each has a quarter of it.
    assert.ok(Math.max(...lateMs(1)) > 1000);
    assert.ok(Math.max(...lateMs(4)) < 60);
  });

  for (const [field, value] of [
    ['processes', 0],
    ['processes', 1.5],
    ['perRequestMs', -1],
    ['perPromptTokenUs', Number.NaN],
    ['perOutputTokenUs', Number.POSITIVE_INFINITY],
  ] as const) {
    it(`is refused with ${field} ${value}`, () => {
      const options = { frontEnd: { ...FRONT_END, [field]: value } };
      assert.throws(() => serve([[0, 1]], options), { code: 'ENGINE_OPTION', field: `frontEnd.${field}` });
    });
  }
});
