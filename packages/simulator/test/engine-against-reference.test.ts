import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Engine } from '../src/engine/engine.ts';
import type { EngineConfig } from '../src/engine/engine-config.ts';
import type { RequestProgress } from '../src/engine/engine-log.ts';
import type { PromptPrefix } from '../src/engine/prefix-cache.ts';
import { TICKS_PER_MS } from '../src/engine/ticks.ts';
import type { IterationLaw, SpeculationProfile } from '../src/profiles/engine-profile.ts';
import { LAW_OF_1_MS } from './recorded-load.ts';
import { ReferenceEngine } from './reference-engine.ts';

const law = fc.record<IterationLaw>({
  baseUs: fc.integer({ min: 500, max: 8000 }),
  weightReadUs: fc.integer({ min: 0, max: 9000 }),
  perTokenUs: fc.integer({ min: 1, max: 100 }),
  perDecodeSequenceUs: fc.integer({ min: 0, max: 120 }),
  perContextTokenNs: fc.double({ min: 1, max: 600, noNaN: true }),
  perPrefillAttentionNs: fc.double({ min: 0, max: 5, noNaN: true }),
  prefillLaunchUs: fc.option(fc.integer({ min: 0, max: 3000 }), { nil: undefined }),
  perContextTokenBesidePrefillNs: fc.option(fc.double({ min: 1, max: 600, noNaN: true }), { nil: undefined }),
  launchBound: fc.option(fc.boolean(), { nil: undefined }),
  experts: fc.option(
    fc.record({
      count: fc.constant(16),
      perToken: fc.integer({ min: 1, max: 16 }),
      readUs: fc.integer({ min: 0, max: 9000 }),
    }),
    { nil: undefined },
  ),
  tokenFactors: fc.option(factors(), { nil: undefined }),
  sequenceFactors: fc.option(factors(), { nil: undefined }),
  manySequences: fc.option(
    fc.record({
      above: fc.integer({ min: 1, max: 20 }),
      perContextTokenNs: fc.double({ min: 1, max: 600, noNaN: true }),
    }),
    { nil: undefined },
  ),
});

function factors() {
  return fc
    .tuple(fc.double({ min: 0.2, max: 3, noNaN: true }), fc.double({ min: 0.2, max: 3, noNaN: true }))
    .map(
      ([few, many]) =>
        [
          [2, few],
          [9, many],
        ] as const,
    );
}

const speculation: SpeculationProfile = {
  method: 'EAGLE',
  draftGiB: 0.5,
  draftBaseUs: 700,
  draftPerTokenUs: 0.8,
  draftPerContextTokenNs: 2.4,
  survival: {},
  source: 'test',
};

/** One array for all, as of one profile: what is drawn ahead may outlive a change of the rest. */
const survival: readonly number[] = [0.7, 0.5, 0.3, 0.2];

/** Small pools and caps, so that shortage and preemption are the rule. */
const config = fc
  .record({
    law,
    maxNumSeqs: fc.integer({ min: 1, max: 24 }),
    kvBlocks: fc.integer({ min: 4, max: 120 }),
    schedulingPolicy: fc.constantFrom('fcfs' as const, 'priority' as const),
    speculationDepth: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 4 })),
  })
  .map((drawn): EngineConfig => ({ ...drawn, speculation, survival }));

const requests = fc.array(
  fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 5000 })),
    input: fc.integer({ min: 1, max: 300 }),
    output: fc.integer({ min: 1, max: 120 }),
    priority: fc.integer({ min: 0, max: 2 }),
    conversation: fc.integer({ min: 0, max: 5 }),
    chunkTokens: fc.constantFrom(16, 32, 64),
    namesAnswer: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60, size: 'max' },
);

/** Adapters of conversations, the base model among them. */
const ADAPTERS = 4;

const windows = fc.array(
  fc.record({
    lengthMs: fc.integer({ min: 1, max: 4000 }),
    change: fc.oneof(
      fc.constant(null),
      config.map((next) => ({ kind: 'configure' as const, next })),
      fc.constant({ kind: 'restart' as const }),
      fc.constant({ kind: 'snapshot' as const }),
    ),
  }),
  { maxLength: 12, size: 'max' },
);

const options = fc.record({
  blockTokens: fc.constantFrom(1, 4, 16),
  maxNumBatchedTokens: fc.constantFrom(24, 64, 512),
  seed: fc.nat(),
  role: fc.constantFrom('mixed' as const, 'mixed' as const, 'prefill' as const),
  prefixCaching: fc.constantFrom(true, true, false),
  asyncScheduling: fc.boolean(),
  requestOverheadMs: fc.constantFrom(0, 20, 300),
  requestOverheadJitter: fc.constantFrom(0, 0, 0.4, 1),
  requestOverheadPerTokenUs: fc.constantFrom(0, 0, 7, 5000),
  frontEnd: fc.option(
    fc.record({
      processes: fc.constantFrom(1, 1, 3),
      perRequestMs: fc.constantFrom(0, 2.5, 40),
      perPromptTokenUs: fc.constantFrom(0, 3.3, 200),
      perOutputTokenUs: fc.constantFrom(0, 76, 2000),
    }),
    { nil: undefined, freq: 2 },
  ),
  watermark: fc.constantFrom(0, 0, 0.01, 0.1, 0.4),
  wholePromptFits: fc.constantFrom(true, true, true, false),
  chunkedPrefill: fc.constantFrom(true, true, true, false),
  longPrefillTokenThreshold: fc.constantFrom(0, 0, 1, 4, 20, 60),
  longPrefillTokenThresholdAdaptive: fc.boolean(),
  drafter: fc.constantFrom('ngram' as const, 'eagle' as const),
  hostKv: fc.record({
    blocks: fc.constantFrom(0, 3, 20, 60, 400, 400, 400),
    loadNsPerToken: fc.constantFrom(0, 5000, 123_456.7),
  }),
  maxLoras: fc.constantFrom(0, 0, 1, 2),
  speculationDepthPerBatchSize: fc.constantFrom(
    ...([
      [],
      [],
      [
        [1, 3, 4],
        [4, 6, 1],
      ],
      [
        [1, 2, 2],
        [5, 9, 0],
      ],
    ] as const),
  ),
});

interface ConversationTurn {
  readonly input: number;
  readonly output: number;
  readonly conversation: number;
  readonly chunkTokens: number;
  readonly namesAnswer: boolean;
}

/** Prompts of one conversation, and answers that have a name, share all tokens but for those that one has not. */
function prefixOf(turn: ConversationTurn, allNamed: boolean): PromptPrefix | null {
  const { input, output, conversation, chunkTokens, namesAnswer } = turn;
  if (conversation === 0) return null;
  const namedTokens = namesAnswer && allNamed ? input + output : input;
  const length = Math.ceil(namedTokens / chunkTokens);
  const family = chunkTokens * 100_000;
  // The first two chunks are the system prompt of all with chunks of this size.
  const ids = Array.from({ length }, (_, c) => family + (c < 2 ? c : conversation * 1000 + c));
  return { chunkTokens, ids, namedTokens };
}

interface Outcome {
  now: number;
  completions: unknown[];
  rejected: number[];
  waiting: number;
  running: number;
  blocksUsed: number;
  counters: unknown;
  interTokenLatency: [number, number][];
  handovers: readonly RequestProgress[];
}

function outcomeOf(engine: Engine): Outcome {
  const { ids, firstTokens, lastTokens, count } = engine.completions;
  const completions = Array.from({ length: count }, (_, i) => ({
    id: ids[i],
    firstToken: firstTokens[i],
    lastToken: lastTokens[i],
  }));
  const { completed: _, rejected: __, ...counters } = engine.counters;
  return {
    now: engine.now,
    completions: completions.sort((a, b) => a.id - b.id),
    rejected: [...engine.rejections].sort((a, b) => a - b),
    waiting: engine.waitingCount,
    running: engine.runningCount,
    blocksUsed: engine.kvBlocksUsed,
    counters,
    interTokenLatency: engine.interTokenLatency.entries(),
    handovers: engine.takeHandovers(),
  };
}

function outcomeOfReference(engine: ReferenceEngine): Outcome {
  const {
    iterations,
    busyTicks,
    outputTokens,
    prefillTokens,
    preemptions,
    draftTokens,
    acceptedTokens,
    cachedTokens,
    loadedTokens,
  } = engine;
  const handovers = engine.handovers;
  engine.handovers = [];
  return {
    now: engine.now,
    completions: engine.completions.slice().sort((a, b) => a.id - b.id),
    rejected: engine.rejected.slice().sort((a, b) => a - b),
    waiting: engine.waiting.length,
    running: engine.running.filter(({ ended }) => !ended).length,
    blocksUsed: engine.config.kvBlocks - engine.pool.free,
    counters: {
      iterations,
      busyTicks,
      outputTokens,
      prefillTokens,
      preemptions,
      draftTokens,
      acceptedTokens,
      cachedTokens,
      loadedTokens,
    },
    interTokenLatency: engine.interTokenLatency.entries(),
    handovers,
  };
}

test('the engine that skips agrees with the engine that steps, to the last tick', () => {
  const seen = {
    preemptions: 0,
    rejected: 0,
    cachedTokens: 0,
    loadedTokens: 0,
    acceptedTokens: 0,
    completed: 0,
  };
  fc.assert(
    fc.property(
      config,
      options,
      requests,
      windows,
      fc.boolean(),
      (first, engineOptions, load, schedule, named) => {
        let fast = new Engine(first, engineOptions);
        const plain = new ReferenceEngine(first, engineOptions);
        let arrival = 0;
        load.forEach((turn, id) => {
          const { gapMs, input, output, priority } = turn;
          arrival += gapMs * TICKS_PER_MS;
          const adapter = turn.conversation % ADAPTERS;
          const request = { id, arrival, input, output, priority, adapter, prefix: prefixOf(turn, named) };
          fast.submit(request);
          plain.submit(request);
        });
        let limit = 0;
        for (const { lengthMs, change } of schedule) {
          limit += lengthMs * TICKS_PER_MS;
          fast.runUntil(limit);
          plain.runUntil(limit);
          assert.deepEqual(outcomeOf(fast), outcomeOfReference(plain));
          if (change?.kind === 'configure') {
            fast.configure(change.next);
            plain.configure(change.next);
          } else if (change?.kind === 'restart') {
            fast.restart(2000 * TICKS_PER_MS);
            plain.restart(2000 * TICKS_PER_MS);
          } else if (change?.kind === 'snapshot') {
            const copy = new Engine(first, engineOptions);
            const snapshot = fast.snapshot();
            fast.runUntil(limit + 10_000 * TICKS_PER_MS);
            copy.restore(snapshot);
            fast.restore(snapshot);
            assert.deepEqual(outcomeOf(fast), outcomeOf(copy));
            fast = copy;
            plain.completions = [];
            plain.rejected = [];
            plain.interTokenLatency.clear();
            plain.iterations = plain.busyTicks = plain.outputTokens = plain.prefillTokens = 0;
            plain.preemptions = plain.draftTokens = plain.acceptedTokens = plain.cachedTokens = 0;
            plain.loadedTokens = 0;
          }
        }
        fast.runUntil(Number.POSITIVE_INFINITY);
        plain.runUntil(Number.POSITIVE_INFINITY);
        assert.deepEqual(outcomeOf(fast), outcomeOfReference(plain));
        assert.equal(fast.kvBlocksUsed, 0);
        for (const what of Object.keys(seen) as (keyof typeof seen)[])
          seen[what] += Math.sign(fast.counters[what]);
      },
    ),
    { numRuns: 800 },
  );
  // Loads on which nothing happens would prove nothing.
  for (const [what, runs] of Object.entries(seen)) assert.ok(runs > 80, `${what} in ${runs} of 800 loads`);
});

test('a queue that adapters are passed over in goes on as it was in an engine of another policy', () => {
  const law = {
    ...{ baseUs: 500, weightReadUs: 0, perTokenUs: 1, perDecodeSequenceUs: 0 },
    ...{ perContextTokenNs: 1, perPrefillAttentionNs: 0 },
  };
  const none = { speculationDepth: 0, speculation: null, survival: [] };
  const fcfs = { law, maxNumSeqs: 2, kvBlocks: 4, schedulingPolicy: 'fcfs' as const, ...none };
  const create = () => new Engine({ ...fcfs, schedulingPolicy: 'priority' }, { maxLoras: 1 });
  const engine = create();
  engine.configure(fcfs);
  // The last is admitted past the one before it, and runs alone when the first is done.
  for (const [id, adapter] of [1, 2, 1].entries())
    engine.submit({ id, arrival: 0, input: 10, output: id === 0 ? 1 : 20, adapter });
  engine.runUntil(TICKS_PER_MS / 4);
  engine.restart(0);
  engine.clearLogs();
  const copy = create();
  copy.restore(engine.snapshot());
  for (const each of [engine, copy]) each.runUntil(Number.POSITIVE_INFINITY);
  assert.deepEqual(outcomeOf(copy).completions, outcomeOf(engine).completions);
});

test('a prefill engine and a decode engine agree with their plain twins', () => {
  const transferTicks = 3 * TICKS_PER_MS;
  fc.assert(
    fc.property(config, config, options, requests, (prefillConfig, decodeConfig, engineOptions, load) => {
      const prefillOptions = { ...engineOptions, role: 'prefill' as const };
      const decodeOptions = { ...engineOptions, role: 'mixed' as const };
      const fast = [new Engine(prefillConfig, prefillOptions), new Engine(decodeConfig, decodeOptions)];
      const plain = [
        new ReferenceEngine(prefillConfig, prefillOptions),
        new ReferenceEngine(decodeConfig, decodeOptions),
      ];
      let arrival = 0;
      load.forEach((turn, id) => {
        const { gapMs, input, output, priority } = turn;
        arrival += gapMs * TICKS_PER_MS;
        const adapter = turn.conversation % ADAPTERS;
        const request = { id, arrival, input, output, priority, adapter, prefix: prefixOf(turn, true) };
        for (const engine of [fast[0], plain[0]]) engine.submit(request);
      });
      for (const limit of [1000, 2500, 6000, Number.POSITIVE_INFINITY]) {
        const ticks = limit * TICKS_PER_MS;
        for (const engine of [fast[0], plain[0]]) engine.runUntil(ticks);
        const outcome = outcomeOf(fast[0]);
        const reference = outcomeOfReference(plain[0]);
        assert.deepEqual(outcome, reference);
        for (const request of outcome.handovers) {
          for (const engine of [fast[1], plain[1]]) {
            engine.submitTransferred(request, request.lastToken + transferTicks);
          }
        }
        for (const engine of [fast[1], plain[1]]) engine.runUntil(ticks);
        assert.deepEqual(outcomeOf(fast[1]), outcomeOfReference(plain[1]));
      }
    }),
    { numRuns: 400 },
  );
});

test('moving the origin of the clock changes nothing but the origin', () => {
  fc.assert(
    fc.property(
      config,
      options,
      requests,
      fc.array(fc.integer({ min: 1, max: 3000 }), { maxLength: 8 }),
      (engineConfig, engineOptions, load, stops) => {
        const outcomes = [false, true].map((shifting) => {
          const engine = new Engine(engineConfig, engineOptions);
          let arrival = 0;
          load.forEach(({ gapMs, input, output, priority }, id) => {
            arrival += gapMs * TICKS_PER_MS;
            engine.submit({ id, arrival, input, output, priority });
          });
          let origin = 0;
          let limit = 0;
          const seen: unknown[] = [];
          const collect = () => {
            const { count, ids, scheduled, firstTokens, lastTokens } = engine.completions;
            for (let i = 0; i < count; i++) {
              seen.push([ids[i], scheduled[i] + origin, firstTokens[i] + origin, lastTokens[i] + origin]);
            }
            engine.clearLogs();
          };
          for (const stop of stops) {
            limit += stop * TICKS_PER_MS;
            engine.runUntil(limit - origin);
            collect();
            if (!shifting) continue;
            const shift = engine.now;
            engine.shiftClock(shift);
            origin += shift;
          }
          engine.runUntil(Number.POSITIVE_INFINITY);
          collect();
          return seen;
        });
        assert.deepEqual(outcomes[1], outcomes[0]);
      },
    ),
    { numRuns: 300 },
  );
});

test('a request that waits is admitted when a running request has filled a block of its prompt', () => {
  const firstConfig: EngineConfig = {
    law: LAW_OF_1_MS,
    ...{ maxNumSeqs: 4, kvBlocks: 10, schedulingPolicy: 'fcfs', speculationDepth: 0 },
    ...{ speculation: null, survival: [] },
  };
  const engineOptions = {
    ...{ blockTokens: 4, maxNumBatchedTokens: 64, seed: 0, role: 'mixed' as const, prefixCaching: true },
    ...{ requestOverheadMs: 0, requestOverheadJitter: 0 },
  };
  const prefix: PromptPrefix = { ids: [7], chunkTokens: 64, namedTokens: 40 };
  const fast = new Engine(firstConfig, engineOptions);
  const plain = new ReferenceEngine(firstConfig, engineOptions);
  for (const engine of [fast, plain]) {
    engine.submit({ id: 0, arrival: 0, input: 8, output: 20, priority: 0, prefix });
    // Its prompt begins with the answer that the first is giving, which has just begun a block.
    engine.submit({ id: 1, arrival: 6 * TICKS_PER_MS, input: 40, output: 1, priority: 0, prefix });
    engine.runUntil(Number.POSITIVE_INFINITY);
  }
  const { firstTokens } = fast.firstTokens;
  assert.deepEqual([firstTokens[0], firstTokens[1]], [1 * TICKS_PER_MS, 9 * TICKS_PER_MS]);
  assert.deepEqual(outcomeOf(fast), outcomeOfReference(plain));
});
