import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import fc from 'fast-check';
import { RandomStream } from '../random/counter-random.ts';
import type { Trace } from '../traces/trace.ts';
import { simulateTrace, summarizeRun, TraceSimulation } from './simulate-trace.ts';
import type { SimulationOptions } from './simulation-options.ts';

const profile = findProfile('a100-40gb-llama-3-8b');

/** Requests a mean of `gapMs` apart, some of one token, with prefixes out of a few. */
function traceOf(requests: number, gapMs: number): Trace {
  const random = new RandomStream(requests, 'trace');
  const arrivalMs = new Float64Array(requests);
  for (let i = 1; i < requests; i++) arrivalMs[i] = arrivalMs[i - 1] + random.exponential(gapMs);
  return {
    source: 'test',
    arrivalMs,
    inputTokens: Int32Array.from(arrivalMs, () => random.integer(64, 1500)),
    outputTokens: Int32Array.from(arrivalMs, () => random.integer(1, 200)),
    prefixBlocks: {
      blockTokens: 32,
      ids: Float64Array.from({ length: 2 * requests }, (_, i) =>
        i % 2 === 0 ? random.integer(0, 5) : 100 + i,
      ),
      offsets: Int32Array.from({ length: requests + 1 }, (_, i) => 2 * i),
    },
  };
}

function piece({ source, prefixBlocks, ...columns }: Trace, from: number, to: number): Trace {
  const { blockTokens, ids, offsets } = prefixBlocks!;
  const start = offsets[from];
  return {
    source,
    arrivalMs: columns.arrivalMs.slice(from, to),
    inputTokens: columns.inputTokens.slice(from, to),
    outputTokens: columns.outputTokens.slice(from, to),
    prefixBlocks: {
      blockTokens,
      ids: ids.slice(start, offsets[to]),
      offsets: offsets.slice(from, to + 1).map((offset) => offset - start),
    },
  };
}

function inPieces(trace: Trace, ends: readonly number[], options: SimulationOptions) {
  const simulation = new TraceSimulation(options);
  let from = 0;
  for (const to of [...new Set(ends)].sort((a, b) => a - b)) {
    simulation.take(piece(trace, from, to));
    from = to;
  }
  simulation.take(piece(trace, from, trace.arrivalMs.length));
  return simulation.finish();
}

describe('a trace that comes in pieces', () => {
  it('is served as the whole one, wherever it is cut', () => {
    const trace = traceOf(2600, 120);
    for (const options of [
      { profile },
      { profile, replicas: 3, router: 'least_loaded', maxNumSeqs: 16 },
      { profile, speculationDepth: 2, kvBudgetFraction: 0.3 },
    ] as const) {
      const whole = summarizeRun(simulateTrace(trace, options));
      assert.ok(whole.completed === 2600 && whole.counters.cachedTokens > 0);
      fc.assert(
        fc.property(fc.array(fc.nat(2600), { maxLength: 6 }), (ends) =>
          assert.deepEqual(inPieces(trace, ends, options), whole),
        ),
        { numRuns: 6, examples: [[[]], [[1023, 1024, 1025]], [[2048]], [[1, 2600]]] },
      );
    }
  });

  it('is served as the whole one over days', () => {
    const trace = traceOf(6000, 60_000);
    assert.ok(trace.arrivalMs.at(-1)! > 60 * 3_600_000);
    assert.deepEqual(
      inPieces(trace, [700, 3000, 4096], { profile }),
      summarizeRun(simulateTrace(trace, { profile })),
    );
  });
});
