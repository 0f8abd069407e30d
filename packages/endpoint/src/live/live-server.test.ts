import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { Cluster, RandomStream, type ServingConfig, simulateTrace, type Trace } from '@servegym/simulator';
import fc from 'fast-check';
import { SimulatedClock } from './clock.ts';
import {
  type FinishedRequest,
  type LiveListener,
  type LiveObserver,
  type LiveRequest,
  LiveServer,
} from './live-server.ts';

const profile = findProfile('a100-40gb-llama-3-8b');
const calm: ServingConfig = {
  maxNumSeqs: 256,
  kvBudgetFraction: 1,
  speculationDepth: 0,
  weights: 'FP16',
  split: false,
  schedulingPolicy: 'fcfs',
};
const SLOW_FRONT_END = { perRequestMs: 30, perPromptTokenUs: 10, perOutputTokenUs: 4000 };
const SILENT: LiveObserver = {
  onSubmitted() {},
  onIteration() {},
  onFirstToken() {},
  onInterToken() {},
  onFinished() {},
  onAborted() {},
  onLateness() {},
};

interface Arrival {
  readonly atMs: number;
  readonly input: number;
  readonly output: number;
}

/** Whole ticks, more than the microsecond within which events count as due, ms. */
const TIE_MS = 1 / 512;

/** A live server on a clock that a test turns. */
class Bench {
  wallMs = 0;
  dueMs = Number.POSITIVE_INFINITY;
  readonly live: LiveServer;

  constructor(
    config: Partial<ServingConfig>,
    observer: Partial<LiveObserver> = {},
    engines: 1 | 2 = 1,
    served = profile,
  ) {
    const server = new Cluster(
      { ...calm, ...config },
      {
        profile: served,
        size: engines,
        maxNumBatchedTokens: 2048,
        acceptance: 'sharegpt',
        prefixCaching: true,
        seed: 0,
      },
    );
    const clock = new SimulatedClock({ timeScale: 1, wallMs: () => this.wallMs });
    const alarm = {
      set: (dueMs: number) => {
        this.dueMs = dueMs;
      },
      clear: () => {
        this.dueMs = Number.POSITIVE_INFINITY;
      },
    };
    this.live = new LiveServer(server, clock, () => alarm, { ...SILENT, ...observer });
  }

  submit(input: number, output: number, listener: Partial<LiveListener> = {}): () => void {
    const request: LiveRequest = {
      promptTokens: input,
      outputTokens: output,
      maxTokens: output,
      choices: 1,
      finishReason: 'length',
      priority: 0,
      prefix: null,
      arrivedMs: this.wallMs,
    };
    return this.live.submit(request, { onTokens() {}, onRefused() {}, ...listener });
  }

  /**
   * When a request can arrive. Whether one that arrives as an iteration begins is in it depends on what the event loop does
   * first, and so on chance; two microseconds later it is not.
   */
  momentFor(atMs: number): number {
    const isTie = this.dueMs >= atMs && this.dueMs - atMs < TIE_MS;
    return isTie ? atMs + TIE_MS : Math.max(atMs, this.wallMs);
  }

  /** Lets time pass up to `untilMs`; each alarm rings `lateMs` late. */
  pass(untilMs: number, lateMs: () => number = () => 0): void {
    for (;;) {
      const ringMs = this.dueMs + lateMs();
      if (!(ringMs <= untilMs)) break;
      this.wallMs = Math.max(this.wallMs, ringMs);
      this.dueMs = Number.POSITIVE_INFINITY;
      this.live.turn();
    }
    this.wallMs = Math.max(this.wallMs, untilMs);
  }
}

const load = fc
  .array(
    fc.record({
      gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150 })),
      input: fc.integer({ min: 1, max: 3000 }),
      output: fc.integer({ min: 1, max: 60 }),
    }),
    { minLength: 1, maxLength: 40, size: 'max' },
  )
  .map((requests): Arrival[] => {
    let atMs = 0;
    return requests.map(({ gapMs, input, output }, i) => {
      if (i > 0) atMs += gapMs;
      return { atMs, input, output };
    });
  });

describe('the live server', () => {
  it('serves as simulate does, to the tick, however late its alarm rings', () => {
    fc.assert(
      fc.property(
        load,
        fc.record({ maxNumSeqs: fc.integer({ min: 1, max: 32 }), speculationDepth: fc.constantFrom(0, 3) }),
        fc.constantFrom(1, 0.02),
        fc.array(fc.double({ min: 0, max: 40, noNaN: true }), { minLength: 1, maxLength: 20 }),
        fc.constantFrom(0, 0, 1, 3),
        (arrivals, knobs, kvBudgetFraction, lateness, processes) => {
          const served =
            processes === 0 ? profile : { ...profile, frontEnd: { ...SLOW_FRONT_END, processes } };
          const finished: FinishedRequest[] = [];
          const bench = new Bench(
            { ...knobs, kvBudgetFraction },
            { onFinished: (request) => finished.push(request) },
            1,
            served,
          );
          let ring = 0;
          const lateMs = () => lateness[ring++ % lateness.length];
          const heard = arrivals.map(() => ({ tokens: 0, isDone: false }));
          const arrivedMs: number[] = [];
          for (const [i, { atMs, input, output }] of arrivals.entries()) {
            bench.pass(atMs - TIE_MS, lateMs);
            bench.pass(bench.momentFor(atMs), lateMs);
            arrivedMs.push(bench.wallMs);
            bench.submit(input, output, {
              onTokens(emitted, isLast) {
                assert.ok(emitted > heard[i].tokens && !heard[i].isDone);
                heard[i] = { tokens: emitted, isDone: isLast };
              },
            });
          }
          bench.pass(10_000_000, lateMs);
          const predicted = simulateTrace(
            {
              source: 'test',
              arrivalMs: Float64Array.from(arrivedMs),
              inputTokens: Int32Array.from(arrivals, ({ input }) => input),
              outputTokens: Int32Array.from(arrivals, ({ output }) => output),
            },
            { profile: served, ...knobs, kvBudgetFraction },
          );
          assert.equal(predicted.completed, arrivals.length);
          const order = (a: number[], b: number[]) => a[0] - b[0] || a[1] - b[1];
          assert.deepEqual(
            finished.map(({ ttftMs, e2eMs }) => [ttftMs, e2eMs]).sort(order),
            Array.from(predicted.ttftMs, (ttftMs, i) => [ttftMs, predicted.e2eMs[i]]).sort(order),
          );
          assert.deepEqual(
            heard,
            arrivals.map(({ output }) => ({ tokens: output, isDone: true })),
          );
        },
      ),
      // The first request leaves the front end at 32 ms, when the others arrive.
      {
        numRuns: 100,
        examples: [
          [
            [0, 32, 32].map((atMs, i) => ({ atMs, input: i === 0 ? 200 : 1, output: 1 })),
            { maxNumSeqs: 1, speculationDepth: 0 },
            1,
            [0],
            1,
          ],
        ],
      },
    );
  });

  /** Times of the requests of a trace whose follow-ups are sent a think time after the answer that a client has. */
  function playConversations(trace: Trace, concurrency?: number): { ttftMs: number[]; e2eMs: number[] } {
    const bench = new Bench({ maxNumSeqs: 8 });
    const { previous, thinkMs } = trace.followUps!;
    const count = trace.arrivalMs.length;
    const ttftMs = new Array<number>(count);
    const e2eMs = new Array<number>(count);
    const due: { atMs: number; request: number }[] = [];
    const starts = [...previous.keys()].filter((i) => previous[i] === -1);
    const startNext = () => {
      const request = starts.shift();
      if (request !== undefined) due.push({ atMs: bench.wallMs, request });
    };
    const send = (request: number) => {
      const sentMs = bench.wallMs;
      bench.submit(trace.inputTokens[request], trace.outputTokens[request], {
        onTokens(_, isLast) {
          ttftMs[request] ??= bench.wallMs - sentMs;
          if (!isLast) return;
          e2eMs[request] = bench.wallMs - sentMs;
          const next = previous.indexOf(request);
          if (next >= 0) due.push({ atMs: bench.wallMs + thinkMs[next], request: next });
          else if (concurrency !== undefined) startNext();
        },
      });
    };
    if (concurrency === undefined) {
      for (const request of starts) due.push({ atMs: trace.arrivalMs[request], request });
    } else {
      for (let i = 0; i < concurrency; i += 1) startNext();
    }
    while (due.length > 0 || bench.dueMs < Number.POSITIVE_INFINITY) {
      due.sort((a, b) => a.atMs - b.atMs || a.request - b.request);
      if (due.length === 0 || bench.dueMs <= due[0].atMs) {
        bench.pass(bench.dueMs);
      } else {
        const { atMs, request } = due.shift()!;
        bench.pass(atMs);
        send(request);
      }
    }
    return { ttftMs, e2eMs };
  }

  for (const [title, concurrency] of [
    ['conversations that arrive', undefined],
    ['five conversations in flight', 5],
  ] as const) {
    it(`serves ${title} as simulate does, each request a think time after the answer before`, () => {
      const random = new RandomStream(0, 'conversations');
      const turns = 4;
      const count = 30 * turns;
      let startMs = 0;
      const all = Array.from({ length: count }, (_, i) => {
        if (i > 0 && i % turns === 0) startMs += random.exponential(300);
        return {
          arrivalMs: startMs,
          think: random.exponential(800),
          input: 20 + i * 13,
          output: 2 + ((i * 7) % 60),
        };
      });
      const trace: Trace = {
        source: 'conversations',
        arrivalMs: Float64Array.from(all, ({ arrivalMs }) => arrivalMs),
        inputTokens: Int32Array.from(all, ({ input }) => input),
        outputTokens: Int32Array.from(all, ({ output }) => output),
        followUps: {
          previous: Int32Array.from(all, (_, i) => (i % turns === 0 ? -1 : i - 1)),
          thinkMs: Float64Array.from(all, ({ think }, i) => (i % turns === 0 ? 0 : think)),
        },
      };
      const played = playConversations(trace, concurrency);
      const run = simulateTrace(trace, { profile, maxNumSeqs: 8, concurrency });
      assert.equal(run.completed, count);
      for (const [i, id] of run.ids.entries()) {
        // A moment in ms is a tick or two beside the simulation's.
        assert.ok(
          Math.abs(played.ttftMs[id] - run.ttftMs[i]) < 1e-3,
          `${id}: ${played.ttftMs[id]} for ${run.ttftMs[i]}`,
        );
        assert.ok(
          Math.abs(played.e2eMs[id] - run.e2eMs[i]) < 1e-3,
          `${id}: ${played.e2eMs[id]} for ${run.e2eMs[i]}`,
        );
      }
    });
  }

  it('hands out no token before it is due', () => {
    const bench = new Bench({});
    const seen: number[] = [];
    bench.submit(500, 5, { onTokens: () => seen.push(bench.wallMs) });
    bench.pass(10_000);
    const { ttftMs, e2eMs } = simulateTrace(
      {
        source: 'test',
        arrivalMs: Float64Array.of(0),
        inputTokens: Int32Array.of(500),
        outputTokens: Int32Array.of(5),
      },
      { profile },
    );
    assert.equal(seen.length, 5);
    assert.ok(Math.abs(seen[0] - ttftMs[0]) < 1e-6, `${seen[0]}`);
    assert.ok(Math.abs(seen[4] - e2eMs[0]) < 1e-6, `${seen[4]}`);
  });

  it('frees what a request holds when it is given up, and tells it nothing more', () => {
    let aborted = 0;
    const bench = new Bench({}, { onAborted: () => aborted++ });
    let tokens = 0;
    const giveUp = bench.submit(4000, 500, { onTokens: () => tokens++ });
    bench.pass(1000);
    const [engine] = bench.live.server.engines;
    assert.ok(engine!.kvBlocksUsed >= 250 && tokens > 5);
    const before = tokens;
    giveUp();
    giveUp();
    assert.equal(engine!.kvBlocksUsed, 0);
    bench.pass(20_000);
    assert.deepEqual([tokens, aborted, bench.live.liveCount], [before, 1, 0]);
  });

  it('changes its settings while it serves; new weights take as long as they load', () => {
    const bench = new Bench({});
    let doneMs = 0;
    bench.pass(60_000);
    bench.submit(100, 20, {
      onTokens(_, isLast) {
        if (isLast) doneMs = bench.wallMs;
      },
    });
    bench.pass(60_100);
    bench.live.configure({ ...calm, weights: 'INT8' });
    assert.equal(bench.live.isReloading(0), true);
    bench.pass(61_000);
    assert.equal(doneMs, 0);
    bench.pass(70_000);
    // About 1 s for the weights of both precisions over a host link of 25 GB/s, and 0.5 s.
    assert.ok(doneMs > 61_600 && doneMs < 62_000, `${doneMs}`);
    assert.equal(bench.live.isReloading(0), false);
    assert.throws(() => bench.live.configure({ ...calm, split: true }), { code: 'ENGINE_CONFIG' });
  });

  it('tells a request that can never fit a pool that has shrunk', () => {
    const bench = new Bench({ maxNumSeqs: 1 });
    let refused = 0;
    bench.submit(100, 1000);
    bench.submit(30_000, 10, { onRefused: () => refused++ });
    bench.pass(500);
    bench.live.configure({ ...calm, kvBudgetFraction: 0.1 });
    bench.pass(100_000);
    assert.equal(refused, 1);
    assert.equal(bench.live.liveCount, 0);
  });

  it('serves on two engines through a change to a prefill/decode split and back', () => {
    const bench = new Bench({}, {}, 2);
    let done = 0;
    const pair = { ...calm, split: false };
    for (let i = 0; i < 60; i++) {
      bench.pass(i * 100);
      if (i === 20) bench.live.configure({ ...pair, split: true });
      if (i === 40) bench.live.configure(pair);
      bench.submit(300, 40, { onTokens: (_, isLast) => isLast && done++ });
    }
    bench.pass(60_000);
    assert.equal(done, 60);
    assert.deepEqual([bench.live.server.roleOf(0), bench.live.server.roleOf(1)], ['mixed', 'mixed']);
  });

  it('goes on past the hours that a clock of ticks can hold', () => {
    const bench = new Bench({});
    const durations: number[] = [];
    for (const hours of [0, 11, 50, 400]) {
      const startMs = hours * 3_600_000;
      bench.pass(startMs);
      bench.submit(100, 10, { onTokens: (_, isLast) => isLast && durations.push(bench.wallMs - startMs) });
      bench.pass(startMs + 60_000);
    }
    assert.equal(durations.length, 4);
    for (const duration of durations) assert.ok(Math.abs(duration - durations[0]) < 1e-3, `${durations}`);
  });
});
