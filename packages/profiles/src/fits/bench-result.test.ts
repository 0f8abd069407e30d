import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseBenchResult } from './bench-result.ts';

/** As `vllm bench serve --save-result --save-detailed` writes it, without the texts. */
const vllm = {
  date: '20251121-120000',
  backend: 'openai',
  model_id: 'meta-llama/Llama-3.1-8B-Instruct',
  num_prompts: 3,
  request_rate: 4,
  burstiness: 1,
  max_concurrency: null,
  duration: 1.2,
  completed: 2,
  failed: 1,
  total_input_tokens: 300,
  request_throughput: 1.66,
  mean_ttft_ms: 45,
  input_lens: [100, 200, 50],
  output_lens: [3, 1, 0],
  ttfts: [0.05, 0.04, 0],
  itls: [[0.01, 0.02], [], []],
  start_times: [5000.5, 5000.25, 5000.75],
  errors: ['', '', 'Connection refused'],
};

const guidellm = {
  metadata: { version: 1 },
  benchmarks: [
    {
      config: { strategy: { type_: 'constant', rate: 1 } },
      requests: {
        successful: [
          {
            type_: 'generative_request_stats',
            request_id: 'a',
            request_start_time: 1_700_000_001.5,
            request_end_time: 1_700_000_002.5,
            request_latency: 1,
            prompt_tokens: 512,
            output_tokens: 101,
            time_to_first_token_ms: 60,
            inter_token_latency_ms: 9,
            info: {
              timings: {
                request_start: 1_700_000_001.5,
                first_token_iteration: 1_700_000_001.5625,
                last_token_iteration: 1_700_000_002.25,
              },
            },
          },
        ],
        incomplete: [],
        errored: [{ request_id: 'b' }],
      },
    },
    {
      requests: {
        successful: [
          {
            scheduler_info: { request_timings: { request_start: 10 } },
            request_latency: 0.5,
            prompt_tokens: 8,
            output_tokens: 2,
            time_to_first_token_ms: 30,
            inter_token_latency_ms: null,
          },
        ],
      },
    },
  ],
};

describe('a result of vllm bench serve', () => {
  it('is read in order of arrival, in ms, without what failed', () => {
    const [load, ...others] = parseBenchResult(JSON.stringify(vllm), 'x.json');
    assert.equal(others.length, 0);
    assert.deepEqual(load, {
      source: 'x.json',
      failed: 1,
      requests: [
        { arrivalMs: 0, inputTokens: 200, outputTokens: 1, ttftMs: 40, e2eMs: 40 },
        { arrivalMs: 250, inputTokens: 100, outputTokens: 3, ttftMs: 50, e2eMs: 80 },
      ],
    });
  });

  it('may hold several runs, one a line, as --append-result writes them', () => {
    const loads = parseBenchResult(`${JSON.stringify(vllm)}\n${JSON.stringify(vllm)}\n`, 'x.json');
    assert.deepEqual(
      loads.map(({ source }) => source),
      ['x.json#1', 'x.json#2'],
    );
  });

  it('without its details is refused with the option that writes them', () => {
    const { input_lens: _, ...summary } = vllm;
    assert.throws(() => parseBenchResult(JSON.stringify(summary), 'x.json'), {
      code: 'TRACE_BENCHMARK',
      message: /`input_lens`.*--save-detailed/,
    });
  });

  for (const list of ['start_times', 'ttfts', 'itls']) {
    it(`is refused without \`${list}\`, or with one too short`, () => {
      for (const wrong of [undefined, [1]]) {
        const text = JSON.stringify({ ...vllm, [list]: wrong });
        assert.throws(() => parseBenchResult(text, 'x.json'), {
          name: 'ProfileError',
          message: /x\.json: expected the start, the time to first token and the latency of every request/,
        });
      }
    });
  }
});

describe('a report of GuideLLM', () => {
  it('has a load for each benchmark, whichever version wrote it', () => {
    const loads = parseBenchResult(JSON.stringify(guidellm, null, 2), 'g.json');
    assert.deepEqual(loads, [
      {
        source: 'g.json: constant at 1 requests/s',
        failed: 1,
        requests: [{ arrivalMs: 0, inputTokens: 512, outputTokens: 101, ttftMs: 62.5, e2eMs: 750 }],
      },
      {
        source: 'g.json: load 2',
        failed: 0,
        requests: [{ arrivalMs: 0, inputTokens: 8, outputTokens: 2, ttftMs: 30, e2eMs: 500 }],
      },
    ]);
  });

  it('is refused without its requests', () => {
    const text = JSON.stringify({ benchmarks: [{ requests: {} }] });
    assert.throws(
      () => parseBenchResult(text, 'g.json'),
      /g\.json: expected `benchmarks\[0\]\.requests\.successful`/,
    );
  });
});

describe('timings of single requests', () => {
  it('are read from JSON lines under their usual names', () => {
    const lines = [
      { arrival_s: 2, prompt_tokens: 10, completion_tokens: 5, ttft_ms: 20, latency_s: 0.1 },
      {
        queued_ts: 1,
        arrival_time: 1e9,
        input_toks: 7,
        output_toks: 2,
        first_token_ts: 1.5,
        last_token_ts: 2,
      },
    ];
    const [load] = parseBenchResult(lines.map((line) => JSON.stringify(line)).join('\n'), 't.jsonl');
    assert.deepEqual(load!.requests, [
      { arrivalMs: 0, inputTokens: 7, outputTokens: 2, ttftMs: 500, e2eMs: 1000 },
      { arrivalMs: 1000, inputTokens: 10, outputTokens: 5, ttftMs: 20, e2eMs: 100 },
    ]);
  });

  const good = { arrival_ms: 0, input_tokens: 10, output_tokens: 5, ttft_ms: 20, e2e_ms: 100 };
  const refused: readonly [change: object, message: RegExp][] = [
    [{ ttft_ms: undefined }, /t\.jsonl:1: expected the time to first token as `ttft_ms`/],
    [{ ttft_ms: '20' }, /`ttft_ms` to be a number, got "20"/],
    [{ ttft_ms: -1 }, /expected the TTFT of request 1/],
    [{ e2e_ms: 10 }, /expected the latency of request 1 to be a time not below the TTFT/],
    [{ input_tokens: 0 }, /expected the prompt of request 1/],
    [{ output_tokens: 1.5 }, /expected the output of request 1/],
  ];
  for (const [change, message] of refused) {
    it(`are refused with ${JSON.stringify(change)}`, () => {
      const text = JSON.stringify({ ...good, ...change });
      assert.throws(() => parseBenchResult(text, 't.jsonl'), { name: 'ProfileError', message });
    });
  }

  it('are refused where a line is no JSON, with the line', () => {
    const text = `${JSON.stringify(good)}\nnot json\n`;
    assert.throws(() => parseBenchResult(text, 't.jsonl'), /t\.jsonl:2: expected .*got not json/);
  });

  it('are refused in an empty file', () => {
    assert.throws(() => parseBenchResult('', 't.jsonl'), /expected requests that were answered, got none/);
  });
});
