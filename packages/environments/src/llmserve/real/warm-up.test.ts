import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SERVE_TASKS } from '../serve-task.ts';
import { RequestGate } from './play-window.ts';
import type { RealAnswer } from './real-client.ts';
import type { RealSettings } from './real-settings.ts';
import { readVllmMetrics, type VllmReading } from './server-controls.ts';
import { clientPrecision, requirePrecision } from './warm-up.ts';

const answer = (ttftMs: number | null, gapsMs: readonly number[]): RealAnswer => ({
  failure: null,
  ttftMs,
  decodeMs: 0,
  gapsMs: [...gapsMs],
  promptTokens: 16,
  completionTokens: gapsMs.length + 1,
  retries: 0,
});

const reading = (ttftSumS: number, ttftCount: number, itlSumS: number, itlCount: number): VllmReading => ({
  running: 0,
  waiting: 0,
  engines: 1,
  kvUsage: 0,
  kvTokens: 0,
  promptTokens: 0,
  generationTokens: 0,
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

describe('the gate of requests', () => {
  it('never lets in more than its limit, the most urgent first and equals in order of arrival', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 30 }),
        async (limit, urgencies) => {
          const gate = new RequestGate(limit);
          const entered: number[] = [];
          const visits = urgencies.map(async (urgency, id) => {
            await gate.enter(urgency);
            entered.push(id);
            assert.ok(gate.insideCount <= limit);
          });
          await new Promise(setImmediate);
          const atOnce = Math.min(limit, urgencies.length);
          assert.equal(gate.waitingCount, urgencies.length - atOnce);
          for (let i = 0; i < urgencies.length; i++) {
            gate.leave();
            await new Promise(setImmediate);
          }
          await Promise.all(visits);
          assert.deepEqual([gate.insideCount, gate.waitingCount], [0, 0]);
          const later = urgencies.map((_, id) => id).slice(atOnce);
          const expected = later.toSorted((a, b) => urgencies[a] - urgencies[b] || a - b);
          assert.deepEqual(entered.slice(atOnce), expected);
        },
      ),
      { numRuns: 50 },
    );
  });
});

/** Metrics of vLLM V1 with two engines, shortened. */
const TEXT = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1024",num_gpu_blocks_override="None"} 1.0
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 4.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 0.25
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 12.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 0.5
`;

it('reads what a vLLM tells at /metrics, and nothing where there is none', async () => {
  const answers: Record<string, string> = { '/vllm/metrics': TEXT, '/other/metrics': 'up 1\n' };
  const server = createServer((request, response) => {
    const answer = answers[request.url!];
    response.writeHead(answer === undefined ? 404 : 200).end(answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { signal } = new AbortController();
  assert.deepEqual(await readVllmMetrics(`${root}/vllm`, signal), {
    running: 7,
    waiting: 2,
    engines: 2,
    kvUsage: 0.5,
    kvTokens: 16_384,
    preemptions: 1,
    promptTokens: 0,
    generationTokens: 0,
    draftTokens: 0,
    acceptedTokens: 0,
    ttftSumS: 0.25,
    ttftCount: 4,
    itlSumS: 0.5,
    itlCount: 12,
  });
  assert.equal(await readVllmMetrics(`${root}/other`, signal), null);
  assert.equal(await readVllmMetrics(`${root}/none`, signal), null);
  server.close();
  await once(server, 'close');
  assert.equal(await readVllmMetrics(`${root}/vllm`, signal), null);
});
