import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { closedBatch, drawLengths, repeatTrace, scaleRate, takeRequests } from './operations.ts';
import type { Trace } from './trace.ts';

const anyTrace: fc.Arbitrary<Trace> = fc
  .array(
    fc.record({
      gap: fc.nat(1000),
      input: fc.integer({ min: 1, max: 2048 }),
      output: fc.integer({ min: 1, max: 100 }),
      ids: fc.array(fc.nat(99), { maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((requests) => {
    const arrivals = [0];
    for (const { gap } of requests.slice(1)) arrivals.push(arrivals.at(-1)! + gap);
    const offsets = [0];
    for (const { ids } of requests) offsets.push(offsets.at(-1)! + ids.length);
    return {
      source: 'test',
      arrivalMs: Float64Array.from(arrivals),
      inputTokens: Int32Array.from(requests, ({ input }) => input),
      outputTokens: Int32Array.from(requests, ({ output }) => output),
      prefixBlocks: {
        blockTokens: 512,
        ids: Float64Array.from(requests.flatMap(({ ids }) => ids)),
        offsets: Int32Array.from(offsets),
      },
    };
  });

function prefixOf(trace: Trace, request: number): number[] {
  const { ids, offsets } = trace.prefixBlocks!;
  return [...ids.subarray(offsets[request], offsets[request + 1])];
}

describe('scaling the rate', () => {
  it('brings the requests twice as fast', () => {
    const trace = { ...closedBatch(3, 1, 1), arrivalMs: Float64Array.of(0, 10, 40) };
    assert.deepEqual([...scaleRate(trace, 2).arrivalMs], [0, 5, 20]);
    assert.deepEqual([...trace.arrivalMs], [0, 10, 40]);
  });

  for (const factor of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    it(`refuses ${factor}`, () => {
      assert.throws(() => scaleRate(closedBatch(1, 1, 1), factor), {
        name: 'SimulatorError',
        code: 'TRACE_OPTION',
      });
    });
  }
});

describe('repeating a trace', () => {
  it('puts the mean gap between two copies', () => {
    const trace = { ...closedBatch(3, 1, 1), arrivalMs: Float64Array.of(0, 10, 40) };
    assert.deepEqual([...repeatTrace(trace, 7).arrivalMs], [0, 10, 40, 60, 70, 100, 120]);
  });

  it('keeps the mean rate, the order and every request with its prefix', () => {
    fc.assert(
      fc.property(anyTrace, fc.integer({ min: 1, max: 70 }), (trace, count) => {
        const length = trace.arrivalMs.length;
        const repeated = repeatTrace(trace, count);
        assert.equal(repeated.arrivalMs.length, count);
        for (let i = 0; i < count; i += 1) {
          assert.equal(repeated.inputTokens[i], trace.inputTokens[i % length]);
          assert.equal(repeated.outputTokens[i], trace.outputTokens[i % length]);
          assert.deepEqual(prefixOf(repeated, i), prefixOf(trace, i % length));
          if (i > 0) assert.ok(repeated.arrivalMs[i] >= repeated.arrivalMs[i - 1]);
        }
        assert.equal(repeated.prefixBlocks!.ids.length, repeated.prefixBlocks!.offsets[count]);
        const copies = repeatTrace(trace, 3 * length).arrivalMs;
        const gap = length > 1 ? trace.arrivalMs[length - 1] / (length - 1) : 0;
        assert.ok(Math.abs(copies[3 * length - 1] - (3 * length - 1) * gap) < 1e-6);
      }),
    );
  });

  it('takes the first requests when fewer are asked for', () => {
    fc.assert(
      fc.property(anyTrace, fc.integer({ min: 1, max: 30 }), (trace, count) => {
        const taken = takeRequests(trace, count);
        assert.equal(taken.arrivalMs.length, Math.min(count, trace.arrivalMs.length));
        for (let i = 0; i < taken.arrivalMs.length; i += 1)
          assert.deepEqual(prefixOf(taken, i), prefixOf(trace, i));
      }),
    );
  });

  for (const count of [0, -1, 1.5, Number.NaN]) {
    it(`refuses ${count} requests`, () => {
      assert.throws(() => repeatTrace(closedBatch(1, 1, 1), count), { code: 'TRACE_OPTION' });
    });
  }
});

describe('a closed batch', () => {
  it('is all there at time zero', () => {
    const trace = closedBatch(4, 128, 64);
    assert.deepEqual([...trace.arrivalMs], [0, 0, 0, 0]);
    assert.deepEqual([...trace.inputTokens], [128, 128, 128, 128]);
    assert.deepEqual([...trace.outputTokens], [64, 64, 64, 64]);
  });
});

describe('conversations', () => {
  const trace: Trace = {
    ...closedBatch(3, 1, 1),
    arrivalMs: Float64Array.of(0, 10, 40),
    followUps: { previous: Int32Array.of(-1, -1, 0), thinkMs: Float64Array.of(0, 0, 25) },
  };

  it('follow their own requests in each copy', () => {
    const { previous, thinkMs } = repeatTrace(trace, 7).followUps!;
    assert.deepEqual([...previous], [-1, -1, 0, -1, -1, 3, -1]);
    assert.deepEqual([...thinkMs], [0, 0, 25, 0, 0, 25, 0]);
  });

  it('are cut with the trace, and think as long at another rate', () => {
    assert.deepEqual(takeRequests(trace, 2).followUps, {
      previous: Int32Array.of(-1, -1),
      thinkMs: new Float64Array(2),
    });
    assert.deepEqual(scaleRate(trace, 2).followUps, trace.followUps);
  });
});

describe('drawn lengths', () => {
  it('lie uniformly between a share of the nominal ones and all of them', () => {
    const drawn = drawLengths({ requests: 20_000, inputTokens: 1000, outputTokens: 5, range: 0.8 });
    for (const [tokens, low, high] of [
      [drawn.inputTokens, 800, 1000],
      [drawn.outputTokens, 4, 5],
    ] as const) {
      assert.deepEqual([Math.min(...tokens), Math.max(...tokens)], [low, high]);
      const mean = tokens.reduce((sum, each) => sum + each, 0) / tokens.length;
      assert.ok(Math.abs(mean - (low + high) / 2) < 0.01 * high, `mean ${mean}`);
    }
    const again = { requests: 20_000, inputTokens: 1000, outputTokens: 5, range: 0.8 };
    assert.deepEqual(drawLengths(again), drawn);
    assert.notDeepEqual(drawLengths({ ...again, seed: 1 }).inputTokens, drawn.inputTokens);
  });

  it('are the nominal ones without a range, and refused with one that is none', () => {
    const { arrivalMs, inputTokens, outputTokens } = closedBatch(4, 10, 20);
    const drawn = drawLengths({ requests: 4, inputTokens: 10, outputTokens: 20 });
    assert.deepEqual(
      [drawn.arrivalMs, drawn.inputTokens, drawn.outputTokens],
      [arrivalMs, inputTokens, outputTokens],
    );
    for (const range of [0, 1.1, Number.NaN]) {
      assert.throws(() => drawLengths({ requests: 1, inputTokens: 1, outputTokens: 1, range }), {
        code: 'TRACE_OPTION',
      });
    }
  });
});
