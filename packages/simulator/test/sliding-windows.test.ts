import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Engine } from '../src/engine/engine.ts';
import type { EngineConfig, EngineOptions } from '../src/engine/engine-config.ts';
import type { KvGroup } from '../src/engine/grouped-block-pool.ts';
import type { PromptPrefix } from '../src/engine/prefix-cache.ts';
import { TICKS_PER_MS } from '../src/engine/ticks.ts';

const law = {
  ...{ baseUs: 900, weightReadUs: 500, perTokenUs: 13, perDecodeSequenceUs: 7 },
  ...{ perContextTokenNs: 37.3, perPrefillAttentionNs: 1.1 },
};

/** Groups of layers for a block size: windows that are no whole blocks, and chunks, beside full attention. */
const groupsFor = (blockTokens: number) =>
  fc
    .array(
      fc.oneof(
        fc.constant<KvGroup>({}),
        fc.constantFrom(1, 5, 16, 20, 33, 64).map((window): KvGroup => ({ window })),
        fc.constantFrom(1, 2, 4).map((blocks): KvGroup => ({ chunk: blocks * blockTokens })),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((groups): KvGroup[] => [...groups, { window: 24 }]);

const options = fc.constantFrom(1, 4, 16).chain((blockTokens) =>
  fc.record({
    blockTokens: fc.constant(blockTokens),
    kvGroups: groupsFor(blockTokens),
    maxNumBatchedTokens: fc.constantFrom(24, 64, 512),
    prefixCaching: fc.constantFrom(true, true, true, false),
    asyncScheduling: fc.boolean(),
    watermark: fc.constantFrom(0, 0, 0.05),
    wholePromptFits: fc.constantFrom(true, true, false),
    chunkedPrefill: fc.constantFrom(true, true, true, false),
    longPrefillTokenThreshold: fc.constantFrom(0, 0, 4, 20),
    requestOverheadMs: fc.constantFrom(0, 20),
    requestOverheadJitter: fc.constantFrom(0, 1),
    role: fc.constantFrom('mixed' as const, 'mixed' as const, 'prefill' as const),
  }),
);

const requests = fc.array(
  fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 50 })),
    input: fc.integer({ min: 1, max: 300 }),
    output: fc.integer({ min: 1, max: 300 }),
    priority: fc.integer({ min: 0, max: 2 }),
    conversation: fc.integer({ min: 0, max: 4 }),
    isAborted: fc.constantFrom(false, false, false, true),
  }),
  { minLength: 8, maxLength: 30, size: 'max' },
);

interface Turn {
  readonly input: number;
  readonly output: number;
  readonly conversation: number;
}

/** What others may ask for of a prompt, or of prompt and answer. */
function prefixOf(
  { input, output, conversation }: Turn,
  names: 'none' | 'prompts' | 'answers',
): PromptPrefix | null {
  if (names === 'none' || conversation === 0) return null;
  const namedTokens = names === 'answers' ? input + output : input;
  const ids = Array.from({ length: Math.ceil(namedTokens / 16) }, (_, c) =>
    c < 2 ? c : conversation * 1000 + c,
  );
  return { chunkTokens: 16, ids, namedTokens };
}

/** An engine that visits each request in each iteration. */
function stepping(config: EngineConfig, given: EngineOptions): Engine {
  const engine = new Engine(config, given);
  const { state } = engine as unknown as { state: object };
  Object.defineProperty(state, 'outOfOrder', { get: () => true });
  return engine;
}

function seen(engine: Engine): unknown[] {
  const { ids, scheduled, firstTokens, lastTokens, count } = engine.completions;
  const running: string[] = [];
  engine.forEachRunning((...figures) => running.push(figures.join()));
  return [
    Array.from({ length: count }, (_, i) => [ids[i], scheduled[i], firstTokens[i], lastTokens[i]]),
    ...[engine.now, engine.kvBlocksUsed, engine.waitingCount, running, { ...engine.counters }],
    ...[engine.interTokenLatency.entries(), [...engine.rejections], engine.takeHandovers()],
  ];
}

test('models with windows are skipped as they are stepped, to the last tick', () => {
  const met = { preemptions: 0, cachedTokens: 0, completed: 0 };
  fc.assert(
    fc.property(
      options,
      requests,
      fc.record({
        maxNumSeqs: fc.integer({ min: 2, max: 24 }),
        room: fc.double({ min: 0.3, max: 0.9, noNaN: true }),
        schedulingPolicy: fc.constantFrom('fcfs' as const, 'fcfs' as const, 'priority' as const),
        names: fc.constantFrom('none' as const, 'none' as const, 'prompts' as const, 'answers' as const),
        isTransferred: fc.constantFrom(false, false, false, true),
      }),
      fc.array(fc.integer({ min: 1, max: 1500 }), { maxLength: 6 }),
      (given, load, { maxNumSeqs, room, schedulingPolicy, names, isTransferred }, windowsMs) => {
        const kvBlocks = 4 + Math.ceil((room * given.kvGroups.length * 450) / given.blockTokens);
        const config: EngineConfig = {
          ...{ law, maxNumSeqs, kvBlocks, schedulingPolicy },
          ...{ speculationDepth: 0, speculation: null, survival: [] },
        };
        let engines = [new Engine(config, given), stepping(config, given)];
        let arrival = 0;
        for (const [id, { gapMs, ...turn }] of load.entries()) {
          arrival += gapMs * TICKS_PER_MS;
          const request = { ...turn, id, arrival, prefix: prefixOf(turn, names) };
          const begun = { scheduled: arrival, firstToken: arrival, lastToken: arrival, emitted: 1 };
          for (const engine of engines) {
            if (!isTransferred) engine.submit(request);
            else
              engine.submitTransferred(
                { ...request, ...begun, visible: arrival, output: turn.output + 1 },
                arrival,
              );
          }
        }
        let limit = 0;
        for (const [i, lengthMs] of windowsMs.entries()) {
          limit += lengthMs * TICKS_PER_MS;
          for (const engine of engines) engine.runUntil(limit);
          assert.deepEqual(seen(engines[0]), seen(engines[1]));
          for (const engine of engines) if (load[i]?.isAborted) engine.abort(i);
          if (i === 2) {
            const snapshot = engines[0].snapshot();
            engines = [new Engine(config, given), stepping(config, given)];
            for (const engine of engines) engine.restore(snapshot);
          }
        }
        for (const engine of engines) engine.runUntil(Number.POSITIVE_INFINITY);
        assert.deepEqual(seen(engines[0]), seen(engines[1]));
        assert.equal(engines[0].kvBlocksUsed, 0);
        for (const what of Object.keys(met) as (keyof typeof met)[]) {
          met[what] += Math.sign(engines[0].counters[what]);
        }
      },
    ),
    { numRuns: 300 },
  );
  // Loads on which nothing happens would prove nothing.
  for (const [what, runs] of Object.entries(met)) assert.ok(runs > 25, `${what} in ${runs} of 300 loads`);
});
