import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '../random/counter-random.ts';
import { describeTrace } from './describe-trace.ts';
import type { Trace } from './trace.ts';

function traceOf(arrivalMs: number[], inputTokens: number[], outputTokens: number[]): Trace {
  return {
    source: 'x',
    arrivalMs: Float64Array.from(arrivalMs),
    inputTokens: Int32Array.from(inputTokens),
    outputTokens: Int32Array.from(outputTokens),
  };
}

/** Arrivals of a Poisson process of 10 requests/s. */
function poisson(requests: number): Trace {
  const random = new RandomStream(1, 'arrivals');
  let at = 0;
  const arrivals = Array.from({ length: requests }, (_, i) => {
    at += i === 0 ? 0 : -100 * Math.log(1 - random.uniform());
    return at;
  });
  const lengths = () => Array.from({ length: requests }, () => 1 + Math.floor(1000 * random.uniform()));
  return traceOf(arrivals, lengths(), lengths());
}

describe('the description of a trace', () => {
  it('finds nothing odd about a Poisson process', () => {
    const {
      requestsPerS: rate,
      gapVariation,
      windows,
      odd,
      lengthCorrelation,
    } = describeTrace(poisson(20_000));
    assert.ok(Math.abs(rate - 10) < 0.3, `${rate}`);
    assert.ok(Math.abs(gapVariation - 1) < 0.05, `${gapVariation}`);
    assert.ok(Math.abs(windows[0].dispersion - 1) < 0.1, `${windows[0].dispersion}`);
    assert.ok(Math.abs(lengthCorrelation) < 0.05);
    assert.deepEqual(odd, []);
  });

  it('tells of what a load generator has sent', () => {
    const requests = 2000;
    const even = Array.from({ length: requests }, (_, i) => 100 * i);
    const { odd } = describeTrace(traceOf(even, even.fill(128).slice(), even));
    assert.ok(
      odd.some((sentence) => sentence.includes('all prompts have 128 tokens')),
      odd.join(),
    );
  });

  it('tells of even gaps, silence and outputs that were cut off', () => {
    const trace = poisson(4000);
    const even = traceOf([...trace.arrivalMs.keys()], [...trace.inputTokens], [...trace.outputTokens]);
    assert.match(describeTrace(even).odd.join(), /evenly spaced/);
    const silent = traceOf(
      [...trace.arrivalMs].map((ms, i) => (i < 2000 ? ms : ms + 60_000)),
      [...trace.inputTokens],
      [...trace.outputTokens].map((tokens) => Math.min(tokens, 512)),
    );
    assert.match(
      describeTrace(silent).odd.join(),
      /nothing arrives for 60 s.*exactly 512 tokens, the most there are/,
    );
  });

  it('counts the share of the prompts that was seen before', () => {
    const trace: Trace = {
      ...traceOf([0, 1, 2], [32, 40, 16], [1, 1, 1]),
      prefixBlocks: {
        blockTokens: 16,
        ids: Float64Array.from([1, 2, 1, 2, 3, 9]),
        offsets: Int32Array.from([0, 2, 5, 6]),
      },
    };
    assert.equal(describeTrace(trace).sharedPrefix, 32 / 88);
  });

  it('holds for a single request', () => {
    const { requests, durationS, requestsPerSOverTime: rateOverTime } = describeTrace(traceOf([0], [5], [6]));
    assert.deepEqual([requests, durationS, rateOverTime.length], [1, 0, 0]);
  });

  it('counts one request as one', () => {
    assert.ok(
      describeTrace(traceOf([0], [1], [1])).odd.includes('only 1 request: the 99th percentiles rest on 1'),
    );
  });
});
