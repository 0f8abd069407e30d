import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findProfile } from '@servegym/profiles';
import type { Trace } from '@servegym/simulator';
import { canScale, serveAutoscaled } from './autoscaled.ts';
import { vllmDefaults } from './candidate.ts';
import { parseSlo } from './slo.ts';

const profile = findProfile('h100-80gb-llama-3-8b');
const engine = { profile, candidate: vllmDefaults(profile) };
const slo = parseSlo('ttft_p99=1s,tpot_p99=50ms');
const how = { router: 'least_loaded', most: 4, seed: 0 } as const;
const at = (requests_in_flight: number) => ({ requests_in_flight, down_seconds: 300 });

/** Twenty minutes with 24 requests a second, then half an hour with 1. */
const arrivalMs = Float64Array.from(
  Array.from({ length: 3000 }, (_, s) => (s < 1200 ? 24 : 1)).flatMap((rate, s) =>
    Array.from({ length: rate }, (_, i) => 1000 * (s + i / rate)),
  ),
);
const trace: Trace = {
  source: 'a busy start',
  arrivalMs,
  inputTokens: new Int32Array(arrivalMs.length).fill(1000),
  outputTokens: new Int32Array(arrivalMs.length).fill(200),
};

test('engines that follow the requests in flight cost less than all of them all the time, and serve all', () => {
  const eager = serveAutoscaled(engine, trace, slo, { ...how, autoscaler: at(2) });
  const lazy = serveAutoscaled(engine, trace, slo, { ...how, autoscaler: at(1000) });
  assert.ok(
    1 < lazy.engines && lazy.engines < eager.engines && eager.engines < 4,
    JSON.stringify([lazy, eager]),
  );
  assert.equal(eager.holds, true);
  // It gives engines back while they are needed.
  assert.ok(lazy.ttftP99Ms > 2 * eager.ttftP99Ms);
  assert.equal(lazy.holds, false);
  assert.deepEqual(serveAutoscaled(engine, trace, slo, { ...how, autoscaler: at(2) }), eager);
});

test('a follow-up comes a think time after the answer, and the trace ends with the last answer', () => {
  const two: Trace = {
    ...{ source: 'a conversation', arrivalMs: Float64Array.of(0, 0) },
    ...{ inputTokens: Int32Array.of(100, 400), outputTokens: Int32Array.of(10, 10) },
    followUps: { previous: Int32Array.of(-1, 0), thinkMs: Float64Array.of(0, 90_000) },
  };
  const { ttftP99Ms, holds } = serveAutoscaled(engine, two, slo, { ...how, autoscaler: at(2) });
  assert.ok(ttftP99Ms < 200, `${ttftP99Ms}`);
  assert.equal(holds, true);
});

test('engines that tell priority classes apart do not come and go', () => {
  const { candidate } = engine;
  assert.equal(canScale(candidate, 4, slo), true);
  assert.equal(canScale({ ...candidate, priority: true }, 4, slo), false);
  assert.equal(canScale(candidate, 4, parseSlo('class0_ttft_p99=1s')), false);
});
