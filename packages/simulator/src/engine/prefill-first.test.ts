import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { Engine } from './engine.ts';
import type { EngineConfig, EngineOptions, IterationSpan } from './engine-config.ts';
import { TICKS_PER_MS } from './ticks.ts';

/** An iteration takes 10 ms, and 1 ms more for each ten tokens. */
const config = {
  law: {
    ...{ baseUs: 10_000, weightReadUs: 0, perTokenUs: 100, perDecodeSequenceUs: 0 },
    ...{ perContextTokenNs: 0, perPrefillAttentionNs: 0 },
  },
  ...{ maxNumSeqs: 8, kvBlocks: 1000, schedulingPolicy: 'fcfs' as const },
  ...{ speculationDepth: 0, speculation: null, survival: [] },
};

interface Asked {
  readonly atMs: number;
  readonly input: number;
  readonly output: number;
}

const drafting = {
  ...{ speculationDepth: 2, survival: [0.5, 0.25] },
  speculation: {
    ...{ method: 'EAGLE', draftGiB: 0, draftBaseUs: 0, draftPerTokenUs: 0, draftPerContextTokenNs: 0 },
    ...{ survival: {}, source: 'test' },
  },
};

function engineWith(
  asked: readonly Asked[],
  options: EngineOptions,
  kvBlocks = 1000,
  drafts: Partial<EngineConfig> = {},
): Engine {
  const engine = new Engine({ ...config, kvBlocks, ...drafts }, options);
  for (const [id, { atMs, input, output }] of asked.entries())
    engine.submit({ id, arrival: atMs * TICKS_PER_MS, input, output });
  return engine;
}

/** First and last token of each request by id, ms. */
function times(engine: Engine): { first: number; last: number }[] {
  const { ids, firstTokens, lastTokens, count } = engine.completions;
  const rows = Array.from({ length: count }, (_, i) => ({
    ...{ id: ids[i], first: firstTokens[i] / TICKS_PER_MS, last: lastTokens[i] / TICKS_PER_MS },
  }));
  return rows.sort((a, b) => a.id - b.id).map(({ first, last }) => ({ first, last }));
}

it('decodes wait while a prompt that comes first is computed in chunks', () => {
  const asked = [
    { atMs: 0, input: 10, output: 3 },
    { atMs: 5, input: 150, output: 1 },
  ];
  const run = (prefillFirst: boolean) => {
    const engine = engineWith(asked, { prefillFirst, maxNumBatchedTokens: 100 });
    engine.runUntil(Number.POSITIVE_INFINITY);
    return { times: times(engine), worstMs: engine.interTokenLatency.quantileMs(1) };
  };
  const { times: first, worstMs } = run(true);
  assert.deepEqual(first, [
    { first: 11, last: 11 + 20 + 15 + 2 * 10.1 },
    { first: 11 + 20 + 15, last: 11 + 20 + 15 },
  ]);
  // The token behind the wait comes 45.1 ms after the one before.
  assert.ok(worstMs >= 45.1, `${worstMs}`);
  // Both share the iterations: the decode takes one token of the budget of each.
  assert.deepEqual(run(false).times, [
    { first: 11, last: 11 + 20 + 10 + 5.2 },
    { first: 11 + 20 + 10 + 5.2, last: 11 + 20 + 10 + 5.2 },
  ]);
});

it('verified drafts wait for prompts too, and share no iteration with them', () => {
  const asked = [
    { atMs: 0, input: 10, output: 30 },
    { atMs: 5, input: 150, output: 1 },
  ];
  for (const drafter of ['ngram', 'eagle'] as const) {
    const spans: IterationSpan[] = [];
    const options = { prefillFirst: true, maxNumBatchedTokens: 100, drafter };
    const engine = engineWith(
      asked,
      { ...options, onIterations: (span) => spans.push(span) },
      1000,
      drafting,
    );
    engine.runUntil(Number.POSITIVE_INFINITY);
    assert.deepEqual(
      spans.slice(0, 4).map(({ prefillTokens }) => prefillTokens),
      [10, 100, 50, 0],
    );
    // A step that verifies three tokens takes 10.3 ms.
    assert.deepEqual(
      spans.slice(0, 4).map(({ start, end }) => (end - start) / TICKS_PER_MS),
      [11, 20, 15, 10.3],
    );
  }
});

it('a prompt is not begun where its last chunk would lack the slots of the first drafts', () => {
  const asked = [
    { atMs: 0, input: 20, output: 6 },
    { atMs: 5, input: 160, output: 1 },
  ];
  // The first holds two of the blocks, and the other needs ten and one for two slots more.
  const engine = engineWith(
    asked,
    { prefillFirst: true, maxNumBatchedTokens: 100, drafter: 'eagle' },
    12,
    drafting,
  );
  engine.runUntil(1000 * TICKS_PER_MS);
  assert.deepEqual([engine.completions.count, engine.counters.preemptions], [2, 0]);
});

it('equal requests that prefill first end together, so that clients move in step', () => {
  const burst = Array.from({ length: 4 }, () => ({ atMs: 0, input: 100, output: 50 }));
  const ends = (prefillFirst: boolean) => {
    const engine = engineWith(burst, { prefillFirst, maxNumBatchedTokens: 100 });
    engine.runUntil(Number.POSITIVE_INFINITY);
    return new Set(times(engine).map(({ last }) => last)).size;
  };
  assert.deepEqual([ends(true), ends(false)], [1, 4]);
});

it('a prompt waits until the scheduler looks for it, at once after a prefill and while nothing runs', () => {
  const asked = [
    { atMs: 0, input: 10, output: 40 },
    { atMs: 30, input: 10, output: 1 },
    { atMs: 31, input: 10, output: 1 },
    { atMs: 900, input: 10, output: 1 },
  ];
  const firsts = (schedulerRecvInterval: number) => {
    const engine = engineWith(asked, { prefillFirst: true, schedulerRecvInterval });
    engine.runUntil(Number.POSITIVE_INFINITY);
    return times(engine).map(({ first }) => Number(first.toFixed(1)));
  };
  // An iteration of one decode takes 10.1 ms. The first prompt is done after 11 ms, both others take 12 together.
  assert.deepEqual(firsts(1), [11, 11 + 2 * 10.1 + 12, 11 + 2 * 10.1 + 12, 911]);
  assert.deepEqual(firsts(20), [11, 11 + 20 * 10.1 + 12, 11 + 20 * 10.1 + 12, 911]);
});

it('every request ends, whatever the pool, and a snapshot goes on as the engine does', () => {
  const request = fc.record({
    atMs: fc.constantFrom(0, 0, 40, 300),
    input: fc.integer({ min: 1, max: 300 }),
    output: fc.integer({ min: 1, max: 40 }),
  });
  const options = fc.record({
    prefillFirst: fc.constant(true),
    asyncScheduling: fc.boolean(),
    schedulerRecvInterval: fc.constantFrom(1, 3, 30),
    prefixCaching: fc.boolean(),
    wholePromptFits: fc.boolean(),
    maxNumBatchedTokens: fc.constantFrom(24, 100, 512),
    longPrefillTokenThreshold: fc.constantFrom(0, 0, 20),
    kvGroups: fc.constantFrom([{}], [{}, { window: 32 }]),
    drafter: fc.constantFrom('ngram' as const, 'eagle' as const),
  });
  const drafts = fc.constantFrom({}, {}, drafting);
  const requests = fc.array(request, { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(requests, options, fc.constantFrom(45, 60, 1000), drafts, (asked, given, kvBlocks, how) => {
      const sorted = asked.toSorted((a, b) => a.atMs - b.atMs);
      const whole = engineWith(sorted, given, kvBlocks, how);
      whole.runUntil(60_000 * TICKS_PER_MS);
      assert.equal(whole.completions.count + whole.rejections.length, sorted.length);
      const cut = engineWith(sorted, given, kvBlocks, how);
      cut.runUntil(100 * TICKS_PER_MS);
      const before = times(cut).length;
      cut.restore(cut.snapshot());
      cut.runUntil(60_000 * TICKS_PER_MS);
      assert.equal(before + cut.completions.count + whole.rejections.length, sorted.length);
      assert.equal(cut.now, whole.now);
    }),
    { numRuns: 300 },
  );
});
