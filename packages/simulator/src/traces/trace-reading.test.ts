import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseTrace, traceParser, traceTextOf } from './parse-trace.ts';
import type { Trace, TraceOptions } from './trace.ts';

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
});
