import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SERVE_TASKS } from '../serve-task.ts';
import type { RealAnswer } from './real-client.ts';
import type { RealSettings } from './real-settings.ts';
import type { VllmReading } from './vllm-metrics.ts';
import { clientPrecision, requirePrecision } from './warm-up.ts';

const answer = (ttftMs: number | null, gapsMs: readonly number[]): RealAnswer => ({
  failure: null,
  ttftMs,
  decodeMs: 0,
  gapsMs,
  promptTokens: 16,
  completionTokens: gapsMs.length + 1,
  retries: 0,
});

const reading = (ttftSumS: number, ttftCount: number, itlSumS: number, itlCount: number): VllmReading => ({
  running: 0,
  waiting: 0,
  kvUsage: 0,
  preemptions: 0,
  draftTokens: 0,
  acceptedTokens: 0,
  ttftSumS,
  ttftCount,
  itlSumS,
  itlCount,
});

describe('the precision of the client', () => {
  // Two answers, 30 ms to the first token and 14 ms between tokens by the server's account.
  const readings = { before: reading(1, 10, 2, 100), after: reading(1.06, 12, 2.056, 104) };

  it('is the measured latencies beside those that the server reports, in the task’s time', () => {
    const precision = clientPrecision([answer(2, [0.7, 0.7]), answer(3, [0.1, 1.3])], readings, 20);
    assert.ok(precision !== null);
    assert.ok(Math.abs(precision.ttftOverheadMs - 20) < 1e-9, `${precision.ttftOverheadMs}`);
    assert.equal(precision.measuredItlMs, 14);
    assert.ok(Math.abs(precision.reportedItlMs - 14) < 1e-9);
  });

  it('is unknown when the server reports nothing, or other requests as well', () => {
    const answers = [answer(2, []), answer(3, [])];
    assert.equal(clientPrecision(answers, { before: null, after: null }, 20), null);
    assert.equal(clientPrecision(answers.slice(1), readings, 20), null);
    assert.equal(clientPrecision([answer(null, [])], readings, 20), null);
  });

  it('refuses a time scale that it does not hold, with a figure and one that it does', () => {
    const settings = { timeScale: 20 } as RealSettings;
    const held = { ttftOverheadMs: 13, measuredItlMs: 14, reportedItlMs: 14 };
    requirePrecision(held, SERVE_TASKS.static_workload, settings);
    assert.throws(
      () => requirePrecision({ ...held, ttftOverheadMs: 891 }, SERVE_TASKS.static_workload, settings),
      {
        code: 'REAL_TIME_SCALE',
        message:
          "The client cannot keep up with LLMSERVE_REAL_TIME_SCALE=20: it adds 891.0 ms of the task's time to each TTFT, more than 50.0 ms (a tenth of the objective of 500 ms). Set it, and --time-scale of the endpoint, to 1 or less",
      },
    );
    assert.throws(
      () => requirePrecision({ ...held, ttftOverheadMs: 100 }, SERVE_TASKS.static_workload, settings),
      {
        message: /to 10 or less$/,
      },
    );
    assert.throws(
      () => requirePrecision({ ...held, measuredItlMs: 0.4 }, SERVE_TASKS.static_workload, settings),
      {
        code: 'REAL_TIME_SCALE',
        message: /it measures 0\.4 ms between tokens where the server reports 14\.0 ms\. .* to 10 or less$/,
      },
    );
  });
});
