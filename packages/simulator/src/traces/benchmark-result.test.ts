import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { benchmarkTrace, readBenchmarkResult } from './benchmark-result.ts';
import { parseTrace } from './parse-trace.ts';

const VLLM = {
  backend: 'vllm',
  request_rate: 4,
  total_input_tokens: 60,
  input_lens: [10, 20, 30],
  output_lens: [3, 0, 2],
  ttfts: [0.5, 0, 0.25],
  itls: [[0.1, 0.1], [], [0.2]],
  start_times: [100.5, 100.6, 100],
  errors: ['', 'timeout', ''],
};

const GUIDELLM = {
  benchmarks: [
    {
      config: { strategy: { type_: 'constant', rate: 2 } },
      requests: {
        successful: [
          {
            prompt_tokens: 7,
            output_tokens: 9,
            info: { timings: { request_start: 12, first_token_iteration: 12.25, last_token_iteration: 13 } },
          },
          { prompt_tokens: 5, output_tokens: 3, request_start_time: 11.5 },
        ],
        incomplete: [{}],
        errored: [],
      },
    },
  ],
};

describe('a result of vllm bench serve', () => {
  it('is a trace of the requests that were answered, in order of arrival', () => {
    const trace = parseTrace(JSON.stringify(VLLM), 'openai-4.0qps.json');
    assert.deepEqual([...trace.arrivalMs], [0, 500]);
    assert.deepEqual([...trace.inputTokens], [30, 10]);
    assert.deepEqual([...trace.outputTokens], [2, 3]);
  });

  it('keeps the latencies of each request', () => {
    const [load] = readBenchmarkResult(VLLM, 'x.json').loads;
    assert.equal(load!.failed, 1);
    assert.equal(load!.requests[0].ttftS, 0.5);
    assert.ok(Math.abs(load!.requests[0].e2eS! - 0.7) < 1e-12);
  });

  it('tells how many clients waited for answers, where requests had no times of their own', () => {
    const concurrencyOf = (entry: object) => readBenchmarkResult(entry, 'x.json').loads[0].concurrency;
    assert.equal(concurrencyOf({ ...VLLM, max_concurrency: 8 }), null);
    assert.equal(concurrencyOf({ ...VLLM, request_rate: 'inf', max_concurrency: 8 }), 8);
    assert.equal(concurrencyOf({ ...VLLM, request_rate: 'inf', max_concurrency: null }), null);
    const guide = (strategy: object) => ({
      benchmarks: [{ ...GUIDELLM.benchmarks[0], config: { strategy } }],
    });
    assert.equal(concurrencyOf(guide({ type_: 'concurrent', streams: 4 })), 4);
    assert.equal(concurrencyOf(guide({ type_: 'synchronous' })), 1);
    assert.equal(concurrencyOf(GUIDELLM), null);
  });

  it('is refused where it has no times, or no single requests', () => {
    const { start_times: _, ...timeless } = VLLM;
    assert.throws(() => parseTrace(JSON.stringify(timeless), 'x.json'), {
      code: 'TRACE_BENCHMARK',
      message: /start_times/,
    });
    assert.throws(() => parseTrace('{"total_input_tokens": 5, "duration": 1}', 'x.json'), {
      code: 'TRACE_BENCHMARK',
      message: /--save-detailed/,
    });
  });
});

describe('a report of GuideLLM', () => {
  it('is a trace of the requests of its load', () => {
    const { trace, reading } = benchmarkTrace(readBenchmarkResult(GUIDELLM, 'g.json'), 'g.json');
    assert.deepEqual([...trace.arrivalMs], [0, 500]);
    assert.deepEqual([...trace.inputTokens], [5, 7]);
    assert.equal(reading.unanswered, 1);
    assert.equal(readBenchmarkResult(GUIDELLM, 'g.json').loads[0].requests[0].ttftS, 0.25);
  });

  it('wants to know which of several loads', () => {
    const several = JSON.stringify({ benchmarks: [...GUIDELLM.benchmarks, ...GUIDELLM.benchmarks] });
    assert.throws(() => parseTrace(several, 'g.json'), {
      code: 'TRACE_BENCHMARK',
      message: /2: constant at 2 requests\/s \(2 requests\)/,
    });
    const result = readBenchmarkResult(JSON.parse(several), 'g.json');
    assert.equal(benchmarkTrace(result, 'g.json', { load: 2 }).trace.arrivalMs.length, 2);
    assert.throws(() => benchmarkTrace(result, 'g.json', { load: 3 }), { code: 'TRACE_BENCHMARK' });
  });
});

describe('JSON that is no benchmark', () => {
  it('is refused', () => {
    for (const text of ['{"a": 1}', '5', 'null', '{"benchmarks": [{}]}', '{"benchmarks": []}', '{']) {
      assert.throws(() => parseTrace(text, 'x.json'), { name: 'SimulatorError' }, text);
    }
  });
});
