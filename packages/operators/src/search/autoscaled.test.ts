import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalJobs } from '@servegym/jobs';
import { findProfile } from '@servegym/profiles';
import type { Trace } from '@servegym/simulator';
import { canScale, searchAutoscalers, serveAutoscaled } from './autoscaled.ts';
import { vllmDefaults } from './candidate.ts';
import { Evaluator, TUNE_JOB_KINDS } from './evaluator.ts';
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
  assert.ok(eager.timesLimit <= 1);
  // It gives engines back while they are needed.
  assert.ok(lazy.ttftP99Ms > 2 * eager.ttftP99Ms);
  assert.ok(lazy.timesLimit > 1);
  assert.deepEqual(serveAutoscaled(engine, trace, slo, { ...how, autoscaler: at(2) }), eager);
});

test('a follow-up comes a think time after the answer, and the trace ends with the last answer', () => {
  const two: Trace = {
    ...{ source: 'a conversation', arrivalMs: Float64Array.of(0, 0) },
    ...{ inputTokens: Int32Array.of(100, 400), outputTokens: Int32Array.of(10, 10) },
    followUps: { previous: Int32Array.of(-1, 0), thinkMs: Float64Array.of(0, 90_000) },
  };
  const { ttftP99Ms, timesLimit } = serveAutoscaled(engine, two, slo, { ...how, autoscaler: at(2) });
  assert.ok(ttftP99Ms < 200, `${ttftP99Ms}`);
  assert.ok(timesLimit <= 1);
});

test('engines that tell priority classes apart do not come and go', () => {
  const { candidate } = engine;
  assert.equal(canScale(candidate, 4, slo), true);
  assert.equal(canScale({ ...candidate, priority: true }, 4, slo), false);
  assert.equal(canScale(candidate, 4, parseSlo('class0_ttft_p99=1s')), false);
});

test('of all autoscalers and fleets, what keeps the SLO with the lowest bill is found; a bound leaves a fleet out', async () => {
  // Two hours, of which the first twenty minutes are busy.
  const long = {
    ...trace,
    arrivalMs: trace.arrivalMs.map((ms) => (ms < 1_200_000 ? ms : 5 * (ms - 960_000))),
  };
  const autoscalers = [1000, 2, 6, 4].map(at);
  const jobs = new LocalJobs({ kinds: TUNE_JOB_KINDS, threads: 2 });
  const evaluator = new Evaluator(jobs, { slo, seed: 0 });
  const fleets = [4, 6, 1].map((most) => ({ ...engine, ...how, most, leastUsd: most }));
  const { found, agreements, ruledOut } = await searchAutoscalers(evaluator, long, fleets, autoscalers, 5);
  const all = autoscalers.map((autoscaler) => serveAutoscaled(engine, long, slo, { ...how, autoscaler }));
  const least = Math.min(...all.filter(({ timesLimit }) => timesLimit <= 1).map(({ engines }) => engines));
  assert.ok(all.some(({ timesLimit, engines }) => timesLimit > 1 && engines < least));
  assert.equal(found[0]?.engines, least);
  assert.ok(Math.abs(found[0]!.usdPerHour - least * profile.gpu.usdPerHour) < 1e-9);
  // Six engines cost more than five; one cannot come and go.
  assert.deepEqual([found[1], found[2], ruledOut], [undefined, undefined, 4]);
  assert.deepEqual([agreements[0].beside, agreements[0].points], [null, 2]);
  const strict = parseSlo('ttft_p99=1ms');
  const impossible = new Evaluator(jobs, { slo: strict, seed: 0 });
  assert.deepEqual((await searchAutoscalers(impossible, trace, fleets.slice(0, 1), [at(2)])).found, [null]);
  await jobs.close();
});
