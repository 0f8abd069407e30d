import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseTrace, traceParser, traceTextOf } from './parse-trace.ts';
import type { Trace, TraceOptions } from './trace.ts';
import { TraceBuilder } from './trace-builder.ts';

/** The trace in a text and how it was read. */
function read(text: string, source: string, options: TraceOptions = {}) {
  const parser = traceParser(traceTextOf(source, text), source, options);
  parser.push(text);
  return parser.end();
}

describe('how a trace is read', () => {
  it('does not depend on where its text is cut', () => {
    const csv = 'arrival_ms,note,input,output\n0,"a\nb",1,2\n10,"c, ""d""",3,4\r\n20,é,5,6\n\n30,x,7,8';
    const jsonl =
      '{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}\n\n' +
      '{"timestamp": 7, "input_length": 600, "output_length": 2, "hash_ids": [1, 2]}';
    fc.assert(
      fc.property(fc.constantFrom(csv, jsonl), fc.array(fc.nat(200), { maxLength: 8 }), (text, cuts) => {
        const parser = traceParser(traceTextOf('x', text), 'x');
        let at = 0;
        for (const cut of cuts.toSorted((a, b) => a - b)) {
          parser.push(text.slice(at, cut));
          at = Math.max(at, cut);
        }
        parser.push(text.slice(at));
        assert.deepEqual(parser.end().trace, parseTrace(text, 'x'));
      }),
    );
  });

  it('hands requests over as it reads them, to whoever wants no more than that', () => {
    const requests = 140_000;
    const lines = Array.from({ length: requests }, (_, i) => {
      const hashes = i % 3 === 0 ? `,"hash_ids":[${i % 7},${i}]` : '';
      return `{"timestamp":${1000 + 5 * i},"input_length":${600 + (i % 400)},"output_length":${1 + (i % 9)}${hashes}}`;
    });
    const text = lines.join('\n');
    const whole = read(text, 'x.jsonl').trace;
    for (const [options, most] of [
      [{}, 70_000],
      [{ sort: true }, requests],
    ] as const) {
      const pieces: Trace[] = [];
      const { trace, reading } = read(text, 'x.jsonl', {
        ...options,
        onRequests: (piece) => pieces.push(piece),
      });
      pieces.push(trace);
      const columns = {
        arrival: [] as number[],
        input: [] as number[],
        output: [] as number[],
        ids: [] as number[],
      };
      const counts: number[] = [];
      for (const { arrivalMs, inputTokens, outputTokens, prefixBlocks } of pieces) {
        assert.ok(arrivalMs.length <= most);
        for (const [i, at] of arrivalMs.entries()) {
          columns.arrival.push(at);
          columns.input.push(inputTokens[i]);
          columns.output.push(outputTokens[i]);
          counts.push(prefixBlocks!.offsets[i + 1] - prefixBlocks!.offsets[i]);
        }
        for (const id of prefixBlocks!.ids) columns.ids.push(id);
      }
      assert.deepEqual(Float64Array.from(columns.arrival), whole.arrivalMs);
      assert.deepEqual(Int32Array.from(columns.input), whole.inputTokens);
      assert.deepEqual(Int32Array.from(columns.output), whole.outputTokens);
      assert.deepEqual(Float64Array.from(columns.ids), whole.prefixBlocks!.ids);
      const { offsets } = whole.prefixBlocks!;
      assert.deepEqual(
        counts,
        Array.from({ length: requests }, (_, i) => offsets[i + 1] - offsets[i]),
      );
      assert.equal(reading.outOfOrder, 0);
    }
  });

  it('names the line that is wrong, wherever the text is cut', () => {
    const parser = traceParser('csv', 'x.csv');
    parser.push('arrival,input,output\n0,1,1\n1,');
    assert.throws(() => parser.push('1,1\n2,1,none\n'), { line: 4, code: 'TRACE_NOT_AN_INTEGER' });
  });

  it('says whose form it is', () => {
    const forms: readonly [text: string, source: string, format: RegExp][] = [
      ['TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,1,1', 'a.csv', /Azure/],
      [
        'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,1,1,2,API log',
        'b.csv',
        /BurstGPT/,
      ],
      ['{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[]}', 'm.jsonl', /Mooncake/],
      ['request_id,timestamp,input_tokens,output_tokens\n0,0.5,1,1', 's.csv', /ServeGen/],
      ['arrival,input,output\n0,1,1', 'p.csv', /^CSV$/],
    ];
    for (const [text, source, format] of forms) assert.match(read(text, source).reading.format, format);
  });

  it('leaves out what BurstGPT lists without an answer, and says how many', () => {
    const text =
      'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n' +
      '5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n';
    const { trace, reading } = read(text, 'BurstGPT_1.csv');
    assert.equal(trace.arrivalMs.length, 1);
    assert.equal(reading.unanswered, 1);
    assert.throws(() => read(text, 'BurstGPT_1.csv', { unanswered: 'refuse' }), {
      code: 'TRACE_LENGTH_RANGE',
    });
  });

  it('guesses columns by names that are like those it knows', () => {
    const { trace, reading } = read('id,Received At,num_prompt,n_output_tokens\na,3,4,5\nb,4,6,7', 'x.csv');
    assert.deepEqual(reading.columns, {
      arrival: 'Received At',
      input: 'num_prompt',
      output: 'n_output_tokens',
    });
    assert.deepEqual([...trace.inputTokens], [4, 6]);
  });

  it('asks where several columns could be meant', () => {
    assert.throws(() => read('created_at,received_at,input,output\n1,1,1,1', 'x.csv'), {
      code: 'TRACE_MISSING_COLUMN',
      message: /created_at or received_at/,
    });
  });

  it('takes the columns that it is told, and refuses those that are not there', () => {
    const text = 'a,b,c\n0,1,2\n1,3,4';
    const map = { arrival: 'a', input: 'c', output: 'b' };
    assert.deepEqual([...read(text, 'x.csv', { map }).trace.inputTokens], [2, 4]);
    assert.throws(() => read(text, 'x.csv', { map: { ...map, output: 'd' } }), {
      code: 'TRACE_UNKNOWN_COLUMN',
      message: /"d", got a, b, c/,
    });
  });

  it('tells the unit of times since 1970 by their size', () => {
    for (const [perS, unit] of [
      [1, 's'],
      [1e3, 'ms'],
      [1e6, 'us'],
      [1e9, 'ns'],
    ] as const) {
      const text = `timestamp,input,output\n${1_700_000_000 * perS},1,1\n${1_700_000_002 * perS},1,1`;
      const { trace, reading } = read(text, 'x.csv');
      assert.equal(reading.arrivalUnit, unit);
      assert.ok(Math.abs(trace.arrivalMs[1] - 2000) < 0.001);
    }
  });

  it('takes the unit that it is told', () => {
    const text = 'arrival,input,output\n0,1,1\n2000,1,1';
    assert.equal(read(text, 'x.csv', { timeUnit: 'us' }).trace.arrivalMs[1], 2);
  });

  it('puts requests in order when it is told to, with their prefixes', () => {
    const row = (at: number, hash: number) =>
      `{"timestamp": ${at}, "input_length": ${hash}, "output_length": 1, "hash_ids": [${hash}]}`;
    const text = [row(50, 1), row(20, 2), row(70, 3), row(20, 4)].join('\n');
    const { trace, reading } = read(text, 'x.jsonl', { sort: true });
    assert.deepEqual([...trace.arrivalMs], [0, 0, 30, 50]);
    assert.deepEqual([...trace.inputTokens], [2, 4, 1, 3]);
    assert.deepEqual([...trace.prefixBlocks!.ids], [2, 4, 1, 3]);
    assert.equal(reading.outOfOrder, 2);
    assert.throws(() => read(text, 'x.jsonl'), { code: 'TRACE_TIME_BACKWARDS', line: 2 });
  });

  it('takes logs as people have them: other separators, numbers in quotes, columns inside of objects', () => {
    const logs: readonly [source: string, text: string][] = [
      ['semicolons.csv', 'arrival;prompt_tokens;completion_tokens\n0,5;1000;20\n2,0;120;30'],
      ['tabs.tsv', 'ts\ttokens_in\ttokens_out\n0.5\t1000\t20\n2\t120\t30'],
      ['short.csv', 'ts, prompt, completion\n0.5,1000,20\n2,120,30'],
      ['halves.csv', 'time,in,out\n0.5,1000,20\n2,120,30'],
      ['phases.csv', 'timestamp_s,prefill,decode\n0.5,1000,20\n2,120,30'],
      ['texts.csv', 'ts,query,response,input_tokens,output_tokens\n0.5,a,b,1000,20\n2,c,d,120,30'],
      ['quotes.csv', '"ts","tokens_in","tokens_out"\n"0.5","1,000","20"\n"2","120","30"'],
      [
        'openai.jsonl',
        [
          '{"created_ms":500,"prompt":"Hi","usage":{"prompt_tokens":"1000","completion_tokens":20,"total_tokens":1020}}',
          '{"created_ms":2000,"prompt":"Ho","usage":{"prompt_tokens":120,"completion_tokens":30}}',
        ].join('\n'),
      ],
      [
        'otel.jsonl',
        [
          '{"start_time":0.5,"gen_ai.usage.input_tokens":1000,"gen_ai.usage.output_tokens":20}',
          '{"start_time":2,"gen_ai.usage.input_tokens":120,"gen_ai.usage.output_tokens":30}',
        ].join('\n'),
      ],
    ];
    for (const [source, text] of logs) {
      const { trace } = read(text, source);
      assert.deepEqual([...trace.arrivalMs], [0, 1500], source);
      assert.deepEqual([...trace.inputTokens], [1000, 120], source);
      assert.deepEqual([...trace.outputTokens], [20, 30], source);
    }
    assert.throws(() => read('ts,tokens_in,tokens_out\n1,"1,20",2', 'x.csv'), {
      code: 'TRACE_NOT_AN_INTEGER',
    });
  });

  it('takes what load generators export, in order, without requests that failed', () => {
    const aiperf = (ns: number, input: number, output: number) => ({
      metadata: { request_start_ns: ns, request_end_ns: ns + 5 },
      metrics: {
        input_sequence_length: { value: input, unit: 'tokens' },
        output_token_count: { value: output - 1, unit: 'tokens' },
        output_sequence_length: { value: output, unit: 'tokens' },
      },
      error: null,
    });
    const failed = {
      metadata: { request_start_ns: 1 },
      metrics: { error_isl: { value: 5 } },
      error: { code: 499 },
    };
    const lines = [failed, aiperf(1.7e18 + 3e9, 8, 9), aiperf(1.7e18 + 1e9, 6, 7)];
    const inferencePerf = [
      {
        start_time: 103,
        request: '{}',
        info: { input_tokens: 8, output_tokens: 9, output_token_times: [104] },
        error: null,
      },
      {
        start_time: 101,
        request: '{}',
        info: { input_tokens: 6, output_tokens: 7, output_token_times: [104] },
        error: null,
      },
      {
        start_time: 102,
        request: '{}',
        info: { input_tokens: 8, output_tokens: 0 },
        error: { error_type: 'Timeout' },
      },
    ];
    const files: readonly [source: string, text: string, title: RegExp][] = [
      ['profile_export.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'), /as AIPerf exports it/],
      [
        'per_request_lifecycle_metrics.json',
        JSON.stringify(inferencePerf, null, 2),
        /as inference-perf reports it/,
      ],
    ];
    for (const [source, text, title] of files) {
      const { trace, reading } = read(text, source);
      assert.match(reading.format, title);
      assert.deepEqual([...trace.arrivalMs].map(Math.round), [0, 2000], source);
      assert.deepEqual([...trace.inputTokens], [6, 8], source);
      assert.deepEqual([...trace.outputTokens], [7, 9], source);
      assert.equal(reading.unanswered, 1, source);
    }
    assert.throws(() => read(JSON.stringify(failed), 'x.jsonl'), {
      code: 'TRACE_EMPTY',
      message: /got 1 that failed/,
    });
  });

  it('takes rounds of TraceLab as conversations', () => {
    const event = (event_type: string, second: number) => ({
      event_type,
      timestamp: `2026-06-01T05:40:${String(second).padStart(2, '0')}.000Z`,
    });
    const round = (session_id: string, input: number, timing_events: unknown[]) =>
      JSON.stringify({
        session_id,
        input_tokens_total: input,
        prefix_tokens: 1,
        output_tokens: 5,
        timing_events,
      });
    const text = [
      round('b', 10, [event('user_message', 20), event('reasoning', 22), event('tool_call', 25)]),
      round('b', 30, [event('tool_result', 26), event('tool_result', 29), event('text', 40)]),
      round('a', 20, [event('user_message', 10), event('text', 12)]),
    ].join('\n');
    const { trace, reading } = read(text, 'round_trace.jsonl');
    assert.match(reading.format, /TraceLab/);
    assert.deepEqual([...trace.inputTokens], [20, 10, 30]);
    assert.deepEqual([...trace.arrivalMs.subarray(0, 2)], [0, 10_000]);
    assert.deepEqual([...trace.followUps!.previous], [-1, -1, 1]);
    assert.equal(trace.followUps!.thinkMs[2], 4000);
  });
});

it('a trace has at most 20 million requests, however they come', () => {
  let taken = 0;
  const builder = new TraceBuilder('many.csv', {
    prefixBlockTokens: 512,
    sort: false,
    onRequests: ({ arrivalMs }) => {
      taken += arrivalMs.length;
    },
  });
  const add = (line: number) => builder.add(line, { dayMs: 0, ms: line }, 1, 1);
  for (let line = 1; line <= 20_000_000; line++) add(line);
  assert.throws(() => add(20_000_001), { code: 'TRACE_TOO_LARGE', line: 20_000_001 });
  assert.ok(taken > 19_000_000);
});
