import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { type EngineProfile, simulateTrace, type Trace, type WeightPrecision } from '@servegym/simulator';
import fc from 'fast-check';
import { autoscaledEngines, leastEngineSeconds as leastOf, traceWork } from './trace-cost.ts';

const leastEngineSeconds = (
  profile: EngineProfile,
  weights: WeightPrecision,
  trace: Trace,
  settings: { maxNumSeqs?: number; speculationDepth?: number } = {},
) => leastOf(profile, { weights, ...settings }, traceWork(trace));

/** Requests that all come at once. */
function burst(requests: readonly (readonly [input: number, output: number])[]): Trace {
  return {
    source: 'drawn',
    arrivalMs: new Float64Array(requests.length),
    inputTokens: Int32Array.from(requests, ([input]) => input),
    outputTokens: Int32Array.from(requests, ([, output]) => output),
  };
}

const PROFILES = [
  ['h100-80gb-llama-3-8b', 'FP16'],
  ['a100-40gb-mistral-7b', 'FP16'],
  ['h200-141gb-qwen3-30b-a3b', 'FP8'],
  ['l40s-48gb-llama-3-8b', 'INT4'],
] as const;

describe('leastEngineSeconds', () => {
  for (const [name, weights] of PROFILES) {
    it(`is never more than a simulated engine takes (${name}, ${weights})`, () => {
      const profile = findProfile(name);
      const request = fc.tuple(fc.integer({ min: 1, max: 6000 }), fc.integer({ min: 1, max: 800 }));
      const settings = fc.record({
        maxNumSeqs: fc.constantFrom(1, 16, 256, 1024),
        maxNumBatchedTokens: fc.constantFrom(1024, 8192, 16_384),
        speculationDepth: fc.constantFrom(0, profile.speculation === null ? 0 : 4),
      });
      fc.assert(
        fc.property(fc.array(request, { minLength: 1, maxLength: 60 }), settings, (requests, chosen) => {
          const trace = burst(requests);
          const { simulatedMs } = simulateTrace(trace, { profile, weights, ...chosen });
          const free = leastEngineSeconds(profile, weights, trace);
          const least = leastEngineSeconds(profile, weights, trace, chosen);
          assert.ok(
            free > 0 && free <= least && least <= simulatedMs / 1000,
            `${least} of ${simulatedMs} ms`,
          );
        }),
        { numRuns: 40 },
      );
    });
  }

  it('comes near to full batches, where no draft may share the work', () => {
    const profile = { ...findProfile('h100-80gb-llama-3-8b'), speculation: null };
    const trace = burst(Array.from({ length: 2000 }, () => [400, 300] as const));
    const { simulatedMs } = simulateTrace(trace, {
      ...{ profile, weights: 'FP16', maxNumSeqs: 1024, maxNumBatchedTokens: 16_384 },
    });
    const share = leastEngineSeconds(profile, 'FP16', trace) / (simulatedMs / 1000);
    assert.ok(share > 0.6, `${share}`);
  });

  it('takes prefixes that an earlier request had as computed', () => {
    const profile = findProfile('h100-80gb-llama-3-8b');
    const plain = burst([
      [1024, 1],
      [1024, 1],
    ]);
    const prefixBlocks = (ids: number[]) => ({
      blockTokens: 512,
      ids: Float64Array.from(ids),
      offsets: Int32Array.of(0, 2, 4),
    });
    const seconds = (ids: number[]) =>
      leastEngineSeconds(profile, 'FP16', { ...plain, prefixBlocks: prefixBlocks(ids) });
    const apart = seconds([1, 2, 3, 4]);
    assert.ok(seconds([1, 2, 1, 4]) < apart);
    assert.ok(seconds([1, 2, 1, 2]) < 0.51 * apart);
    // A block behind one that is new is not a prefix.
    assert.equal(seconds([1, 2, 3, 2]), apart);
  });
});

/** Requests of equal work at so many a second in each minute. */
function minutes(rates: readonly number[]): Trace {
  const arrivalMs = rates.flatMap((rate, minute) =>
    Array.from({ length: 60 * rate }, (_, i) => 60_000 * minute + (1000 * i) / rate),
  );
  const tokens = new Int32Array(arrivalMs.length).fill(100);
  return {
    source: 'made',
    arrivalMs: Float64Array.from(arrivalMs),
    inputTokens: tokens,
    outputTokens: tokens,
  };
}

const options = { most: 8, outputWeight: 3 };

describe('autoscaledEngines', () => {
  it('takes one engine where one is enough, and all of them where the most are needed', () => {
    assert.equal(autoscaledEngines(minutes([4, 4, 4, 4]), 5, options), 1);
    assert.equal(autoscaledEngines(minutes([40, 40, 40]), 5, options), 8);
    assert.equal(autoscaledEngines(minutes([80, 80, 80]), 5, options), 8);
  });

  it('bills a burst of a minute from a cold start before it, and for five minutes after', () => {
    const rates = [4, 4, 4, 20, 4, 4, 4, 4, 4, 4, 4, 4];
    // Minutes 2 to 8 with four engines, the other five with one.
    assert.equal(autoscaledEngines(minutes(rates), 5, options), (7 * 4 + 5) / 12);
  });

  it('takes the rate of a trace shorter than a minute for what it is', () => {
    const { arrivalMs, ...rest } = minutes([20]);
    const short = { ...rest, arrivalMs: arrivalMs.map((ms) => ms / 10) };
    assert.equal(autoscaledEngines(short, 100, options), 3);
    assert.equal(autoscaledEngines(minutes([1]), 5, { ...options, fewest: 2 }), 2);
  });

  it('counts work, not requests', () => {
    const trace = minutes([4, 4, 4, 4, 4, 4, 4, 4]);
    const inputTokens = trace.inputTokens.map((tokens, i) => (i < 240 ? 9 * tokens : tokens));
    assert.ok(autoscaledEngines({ ...trace, inputTokens }, 5, options) > 1);
  });
});
