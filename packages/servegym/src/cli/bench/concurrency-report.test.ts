import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { concurrencyPlotSvg } from './concurrency-plot.ts';
import { concurrencyJson, concurrencyTable } from './concurrency-report.ts';
import type { BatchResult } from './session-batch.ts';

function batch(sessions: number, change: Partial<BatchResult> = {}): BatchResult {
  return {
    sessions,
    succeeded: sessions,
    wallS: 2,
    launchS: 0.5,
    requestsPerS: sessions / 2,
    stepsPerS: sessions / 2,
    total: { p50: 1010, p99: 1200, max: 1300 },
    connect: { p50: 5, p99: 10, max: 11 },
    reset: { p50: 1, p99: 2, max: 3 },
    step: { p50: 1000, p99: 1100, max: 1200 },
    failures: {},
    answeredBy: {},
    loadCpu: 0.3,
    ...change,
  };
}

const nobody = {
  succeeded: 0,
  requestsPerS: 0,
  stepsPerS: 0,
  total: null,
  connect: null,
  reset: null,
  step: null,
};

const run = {
  urls: ['http://here:8000/'],
  action: { wait_seconds: 1 },
  steps: 1,
  rampS: 0,
  batches: [
    batch(64),
    batch(1024, { succeeded: 1023, failures: { ECONNRESET: 1 }, total: { p50: 1100, p99: 2400, max: 2500 } }),
    batch(2048, { ...nobody, failures: { CAPACITY_REACHED: 2000, 'TIMEOUT in reset': 48 }, loadCpu: 0.97 }),
  ],
};

describe('the report of a concurrency benchmark', () => {
  it('has a line for each batch, what failed, and a bar that grows with the time', () => {
    const lines = concurrencyTable(run).split('\n');
    const row = (sessions: string) => lines.find((line) => line.startsWith(`${sessions} `))!;
    assert.deepEqual(row('64').split(/ {2,}/), [
      '64',
      '100.0 %',
      '1.010',
      '1.200',
      '0.010',
      '0.002',
      '1.100',
      '32.0',
      '32.0',
    ]);
    assert.match(row('1,024'), /99\.9 %/);
    assert.match(row('2,048'), /0\.0 % +- +-/);
    assert.ok(lines.includes('largest batch with at least 95 % success: 1024'));
    assert.ok(lines.includes('note: 2,048 sessions: failed 2,000 CAPACITY_REACHED, 48 TIMEOUT in reset'));
    assert.ok(lines.some((line) => line.includes('the load took 97 % of a core')));
    const bars = lines.slice(-3).map((line) => line.replace(/[^█░]/g, '').length);
    assert.deepEqual(bars, [24, 48, 0]);
  });

  it('gives all figures as JSON', () => {
    const json = concurrencyJson(run);
    assert.equal(json.largest_with_95_percent_success, 1024);
    const [first, second, third] = json.batches;
    assert.deepEqual(first!.total_ms, { p50: 1010, p99: 1200, max: 1300 });
    assert.equal(second!.success_rate, 1023 / 1024);
    assert.deepEqual([third!.total_ms, third!.failures.CAPACITY_REACHED], [null, 2000]);
    assert.equal(
      concurrencyJson({ ...run, batches: [batch(1, nobody)] }).largest_with_95_percent_success,
      null,
    );
  });
});

describe('concurrencyPlotSvg', () => {
  it('draws a point for each figure that there is', () => {
    const svg = concurrencyPlotSvg('a < b', run.batches);
    assert.equal((svg.match(/<circle /g) ?? []).length, 2 + 2 + 3 + 3);
    assert.match(svg, /a &lt; b/);
    assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
    for (const sessions of [64, 1024, 2048]) assert.match(svg, new RegExp(`>${sessions}</text>`));
  });

  it('draws a single batch, and one in which nothing succeeded', () => {
    for (const change of [{}, nobody]) {
      assert.doesNotMatch(concurrencyPlotSvg('one', [batch(1, change)]), /NaN|Infinity|undefined/);
    }
  });
});
