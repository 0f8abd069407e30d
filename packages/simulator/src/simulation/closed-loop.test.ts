import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import fc from 'fast-check';
import type { EngineProfile } from '../profiles/engine-profile.ts';
import { drawLengths } from '../traces/operations.ts';
import type { Trace } from '../traces/trace.ts';
import { simulateTrace } from './simulate-trace.ts';
import type { SimulationRun } from './simulation-run.ts';

const { requestOverheadJitter: _, ...rest } = findProfile('a100-40gb-llama-3-8b');
/** Without draws that depend on the number of a request: every draft token is accepted. */
const profile: EngineProfile = {
  ...{ ...rest, requestOverheadJitter: 0 },
  speculation: { ...rest.speculation!, survival: { sharegpt: [1, 1, 1] } },
};

const conversations: fc.Arbitrary<Trace> = fc
  .array(
    fc.record({
      gapMs: fc.integer({ min: 0, max: 3000 }),
      input: fc.integer({ min: 1, max: 3000 }),
      output: fc.integer({ min: 1, max: 300 }),
      back: fc.option(fc.integer({ min: 1, max: 5 }), { freq: 3, nil: 0 }),
      thinkMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 4000, noNaN: true })),
    }),
    { minLength: 1, maxLength: 60, size: 'max' },
  )
  .map((requests) => {
    let at = 0;
    return {
      source: 'drawn',
      arrivalMs: Float64Array.from(requests, ({ gapMs }, i) => {
        at += i === 0 ? 0 : gapMs;
        return at;
      }),
      inputTokens: Int32Array.from(requests, ({ input }) => input),
      outputTokens: Int32Array.from(requests, ({ output }) => output),
      followUps: {
        previous: Int32Array.from(requests, ({ back }, i) => (back === 0 || back > i ? -1 : i - back)),
        thinkMs: Float64Array.from(requests, ({ thinkMs }) => thinkMs),
      },
    };
  });

/** Latencies by request, in the order of arrival. */
function byArrival(run: SimulationRun): { order: number[]; figures: number[][]; arrivals: Float64Array } {
  const arrivalMs = run.arrivalMs!;
  const rows = Array.from(run.ids.keys()).sort(
    (a, b) => arrivalMs[a] - arrivalMs[b] || run.ids[a] - run.ids[b],
  );
  return {
    order: rows.map((row) => run.ids[row]),
    figures: rows.map((row) => [run.queueMs[row], run.ttftMs[row], run.e2eMs[row]]),
    arrivals: Float64Array.from(rows, (row) => arrivalMs[row]),
  };
}

/** The requests of a run as a trace that does not depend on answers. */
function openTrace(trace: Trace, order: readonly number[], arrivalMs: Float64Array): Trace {
  return {
    ...{ source: 'open', arrivalMs },
    inputTokens: Int32Array.from(order, (i) => trace.inputTokens[i]),
    outputTokens: Int32Array.from(order, (i) => trace.outputTokens[i]),
  };
}

function inOrderOfId(run: SimulationRun): number[][] {
  const rows = Array.from(run.ids.keys()).sort((a, b) => run.ids[a] - run.ids[b]);
  return rows.map((row) => [run.queueMs[row], run.ttftMs[row], run.e2eMs[row]]);
}

const servers: readonly [string, (trace: Trace, concurrency?: number) => SimulationRun][] = [
  [
    'one engine',
    (trace, concurrency) => simulateTrace(trace, { profile, maxNumSeqs: 6, kvBlocks: 600, concurrency }),
  ],
  [
    'one engine that speculates',
    (trace, concurrency) =>
      simulateTrace(trace, { profile, speculationDepth: 2, kvBlocks: 600, concurrency }),
  ],
  [
    'three replicas',
    (trace, concurrency) =>
      simulateTrace(trace, { profile, replicas: 3, router: 'least_loaded', maxNumSeqs: 4, concurrency }),
  ],
  [
    'prefill and decode apart',
    (trace, concurrency) =>
      simulateTrace(trace, { profile, split: { prefill: 1, decode: 1 }, maxNumSeqs: 6, concurrency }),
  ],
];

for (const [name, serve] of servers) {
  describe(`a closed loop on ${name}`, () => {
    it('is served as a trace with the same arrivals, to the last tick', () => {
      fc.assert(
        fc.property(
          conversations,
          fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
          (trace, n) => {
            const closed = byArrival(serve(trace, n));
            assert.equal(closed.order.length, trace.arrivalMs.length);
            // Requests of one moment come in the order in which the loop took them, which their numbers need not tell.
            fc.pre(new Set(closed.arrivals).size === closed.arrivals.length || n === undefined);
            const open = serve(openTrace(trace, closed.order, closed.arrivals));
            assert.deepEqual(closed.figures, inOrderOfId(open));
          },
        ),
        { numRuns: 60 },
      );
    });

    it('sends each follow-up when its think time after the answer is over', () => {
      fc.assert(
        fc.property(conversations, (trace) => {
          const run = serve(trace);
          const end = new Map(Array.from(run.ids, (id, row) => [id, run.arrivalMs![row] + run.e2eMs[row]]));
          for (const [row, id] of run.ids.entries()) {
            const previous = trace.followUps!.previous[id];
            const due =
              previous === -1 ? trace.arrivalMs[id] : end.get(previous)! + trace.followUps!.thinkMs[id];
            assert.ok(Math.abs(run.arrivalMs![row] - due) < 1e-6, `request ${id}`);
          }
        }),
        { numRuns: 30 },
      );
    });

    it('keeps as many conversations in flight as were asked for', () => {
      const run = serve(drawLengths({ requests: 200, inputTokens: 400, outputTokens: 90, range: 0.5 }), 7);
      const arrivals = run.arrivalMs!.toSorted();
      const ends = Float64Array.from(run.ids, (_, row) => run.arrivalMs![row] + run.e2eMs[row]).sort();
      assert.equal(arrivals.length, 200);
      assert.deepEqual([...arrivals.subarray(0, 7)], [0, 0, 0, 0, 0, 0, 0]);
      // The eighth starts with the end of the first, and so on.
      for (let i = 7; i < 200; i++) assert.ok(Math.abs(arrivals[i] - ends[i - 7]) < 1e-6, `arrival ${i}`);
    });
  });
}

describe('a closed loop', () => {
  it('goes on after a request that can never fit', () => {
    const trace: Trace = {
      source: 'test',
      arrivalMs: Float64Array.of(0, 1, 2),
      inputTokens: Int32Array.of(100, 20_000, 100),
      outputTokens: Int32Array.of(5, 5, 5),
      followUps: { previous: Int32Array.of(-1, 0, 1), thinkMs: Float64Array.of(0, 10, 10) },
    };
    const { completed, rejected } = simulateTrace(trace, { profile, kvBlocks: 100 });
    assert.deepEqual([completed, rejected], [2, 1]);
  });

  it('is refused with a concurrency that is none, and where a request stands before what it follows', () => {
    const trace = drawLengths({ requests: 2, inputTokens: 10, outputTokens: 10 });
    for (const concurrency of [0, 1.5, Number.NaN]) {
      assert.throws(() => simulateTrace(trace, { profile, concurrency }), { code: 'SIMULATION_OPTION' });
    }
    const followUps = { previous: Int32Array.of(1, -1), thinkMs: new Float64Array(2) };
    assert.throws(() => simulateTrace({ ...trace, followUps }, { profile }), { code: 'SIMULATION_OPTION' });
  });

  it('is served over days as a trace with the same arrivals', () => {
    const count = 60;
    const trace: Trace = {
      ...drawLengths({ requests: count, inputTokens: 400, outputTokens: 90, range: 0.5 }),
      followUps: {
        previous: Int32Array.from({ length: count }, (_, i) => Math.max(-1, i - 2)),
        thinkMs: new Float64Array(count).fill(7_200_000),
      },
    };
    const closed = byArrival(simulateTrace(trace, { profile }));
    assert.ok(closed.arrivals.at(-1)! > 50 * 3_600_000);
    const open = simulateTrace(openTrace(trace, closed.order, closed.arrivals), { profile });
    for (const [i, figures] of inOrderOfId(open).entries()) {
      for (const [f, ms] of figures.entries()) assert.ok(Math.abs(ms - closed.figures[i][f]) < 1e-6);
    }
  });
});
