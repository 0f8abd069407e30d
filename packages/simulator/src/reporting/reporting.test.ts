import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fixtureProfile as profile } from '../../test/profile-fixture.ts';
import { simulateTrace } from '../simulation/simulate-trace.ts';
import type { SimulatedSpan } from '../simulation/simulation-run.ts';
import type { Trace } from '../traces/trace.ts';
import { REQUEST_COLUMNS, requestRows } from './reporting.ts';

const requests = 60;
const trace: Trace = {
  source: 'test',
  arrivalMs: Float64Array.from({ length: requests }, (_, i) => i * 50),
  inputTokens: Int32Array.from({ length: requests }, (_, i) => 50 + (i % 9) * 100),
  outputTokens: Int32Array.from({ length: requests }, (_, i) => 1 + (i % 5) * 20),
};
const spans: SimulatedSpan[] = [];
const run = simulateTrace(trace, {
  profile,
  replicas: 2,
  maxNumSeqs: 8,
  onIterations: (span) => spans.push(span),
});

describe('the spans of a run', () => {
  it('add up to what the engines did, in order and without overlap', () => {
    const total = (of: (span: SimulatedSpan) => number) => spans.reduce((sum, span) => sum + of(span), 0);
    assert.equal(
      total((span) => span.iterations),
      run.counters.iterations,
    );
    assert.equal(
      total((span) => span.prefillTokens),
      run.counters.prefillTokens,
    );
    for (const replica of [0, 1]) {
      let end = 0;
      for (const span of spans.filter((each) => each.replica === replica)) {
        assert.ok(span.startMs >= end - 1e-9);
        end = span.startMs + span.durationMs;
      }
    }
  });

  it('change nothing in the run', () => {
    const unobserved = simulateTrace(trace, { profile, replicas: 2, maxNumSeqs: 8 });
    assert.deepEqual(unobserved.e2eMs, run.e2eMs);
    assert.deepEqual(unobserved.counters, run.counters);
  });
});

describe('the export of requests', () => {
  it('has a row for each, with all columns', () => {
    const rows = [...requestRows(trace, run)];
    assert.equal(rows.length, requests);
    for (const row of rows) {
      assert.deepEqual(Object.keys(row), [...REQUEST_COLUMNS]);
      assert.equal(row.tpot_ms === null, row.output_tokens === 1);
      assert.ok(Number(row.queue_ms) <= Number(row.ttft_ms) && Number(row.ttft_ms) <= Number(row.e2e_ms));
    }
  });
});
