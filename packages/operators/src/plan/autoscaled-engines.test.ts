import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Trace } from '@servegym/simulator';
import { autoscaledEngines } from './autoscaled-engines.ts';

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

  it('starts none for what other engines serve all the time', () => {
    const rates = [4, 4, 4, 20, 4, 4, 4, 4, 4, 4, 4, 4];
    // 12 requests/s are served: the burst takes two more, in minutes 2 to 8.
    assert.equal(autoscaledEngines(minutes(rates), 5, { ...options, fewest: 0, base: 12 }), (7 * 2) / 12);
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
