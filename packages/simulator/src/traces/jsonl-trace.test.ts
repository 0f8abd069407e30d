import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SimulatorError, type SimulatorErrorCode } from '../simulator-error.ts';
import { parseTrace } from './parse-trace.ts';

describe('a trace in JSONL', () => {
  it('is read in Mooncake’s form, with the hashes of the prefix blocks', () => {
    const text = [
      '{"timestamp": 3000, "input_length": 1025, "output_length": 500, "hash_ids": [0, 1, 2]}',
      '{"timestamp": 3000, "input_length": 512, "output_length": 3, "hash_ids": []}',
      '{"timestamp": 4500, "input_length": 700, "output_length": 9, "hash_ids": [0, 46]}',
      '',
    ].join('\r\n');
    const trace = parseTrace(text, 'mooncake.jsonl');
    assert.deepEqual([...trace.arrivalMs], [0, 0, 1500]);
    assert.deepEqual([...trace.inputTokens], [1025, 512, 700]);
    assert.deepEqual([...trace.outputTokens], [500, 3, 9]);
    assert.equal(trace.prefixBlocks?.blockTokens, 512);
    assert.deepEqual([...trace.prefixBlocks!.offsets], [0, 3, 3, 5]);
    assert.deepEqual([...trace.prefixBlocks!.ids], [0, 1, 2, 0, 46]);
  });

  it('is read with arrivals in s, as engines log them', () => {
    const text =
      '{"arrival_time": 1787267980.5, "input_toks": 10, "output_toks": 2, "queued_ts": 1.5}\n' +
      '{"arrival_time": 1787267981.75, "input_toks": 11, "output_toks": 3}';
    const trace = parseTrace(text, 'requests.jsonl');
    assert.deepEqual([...trace.arrivalMs], [0, 1250]);
    assert.equal(trace.prefixBlocks, undefined);
  });

  it('takes hashes of blocks of another size', () => {
    const text = '{"timestamp": 0, "input_length": 33, "output_length": 1, "hash_ids": [7, 8, 9]}';
    const trace = parseTrace(text, 'x.jsonl', { prefixBlockTokens: 16 });
    assert.equal(trace.prefixBlocks?.blockTokens, 16);
  });

  const good = '{"timestamp": 5, "input_length": 10, "output_length": 2}';
  const refused: readonly [what: string, line: string, code: SimulatorErrorCode][] = [
    ['half an object', '{"timestamp": 5, "input_le', 'TRACE_MALFORMED_LINE'],
    ['a list', '[5, 10, 2]', 'TRACE_MALFORMED_LINE'],
    ['null', 'null', 'TRACE_MALFORMED_LINE'],
    ['no arrival', '{"input_length": 10, "output_length": 2}', 'TRACE_MISSING_COLUMN'],
    ['no output', '{"timestamp": 5, "input_length": 10}', 'TRACE_MISSING_COLUMN'],
    ['a negative length', '{"timestamp": 5, "input_length": -10, "output_length": 2}', 'TRACE_LENGTH_RANGE'],
    ['a length of zero', '{"timestamp": 5, "input_length": 10, "output_length": 0}', 'TRACE_LENGTH_RANGE'],
    ['half a token', '{"timestamp": 5, "input_length": 10.5, "output_length": 2}', 'TRACE_NOT_AN_INTEGER'],
    [
      'null for a length',
      '{"timestamp": 5, "input_length": null, "output_length": 2}',
      'TRACE_NOT_AN_INTEGER',
    ],
    [
      'a time that is no time',
      '{"timestamp": true, "input_length": 10, "output_length": 2}',
      'TRACE_TIMESTAMP',
    ],
    [
      'a time that goes backwards',
      '{"timestamp": 4, "input_length": 10, "output_length": 2}',
      'TRACE_TIME_BACKWARDS',
    ],
    [
      'hashes that are no list',
      '{"timestamp": 5, "input_length": 10, "output_length": 2, "hash_ids": 7}',
      'TRACE_HASH_IDS',
    ],
    [
      'hashes that are no numbers',
      '{"timestamp": 5, "input_length": 10, "output_length": 2, "hash_ids": ["a"]}',
      'TRACE_HASH_IDS',
    ],
    [
      'more hashes than blocks',
      '{"timestamp": 5, "input_length": 512, "output_length": 2, "hash_ids": [1, 2]}',
      'TRACE_HASH_IDS',
    ],
  ];
  for (const [what, line, code] of refused) {
    it(`is refused for ${what}`, () => {
      assert.throws(
        () => parseTrace(`${good}\n\n${line}\n`, 'bad.jsonl'),
        (error) => {
          assert.ok(error instanceof SimulatorError, String(error));
          assert.equal(error.code, code);
          assert.equal(error.line, 3);
          return true;
        },
      );
    });
  }

  it('is refused when empty', () => {
    assert.throws(() => parseTrace(' \n', 'x.jsonl'), { name: 'SimulatorError', code: 'TRACE_EMPTY' });
  });

  it('answers any lines of JSON with a trace or a SimulatorError', () => {
    const entry = fc.dictionary(
      fc.constantFrom('timestamp', 'input_length', 'output_length', 'hash_ids', 'x'),
      fc.oneof(fc.integer({ min: -2, max: 5 }), fc.jsonValue()),
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 5 }), (entries) => {
        try {
          parseTrace(entries.map((value) => JSON.stringify(value)).join('\n'), 'x.jsonl');
        } catch (error) {
          assert.ok(error instanceof SimulatorError, String(error));
        }
      }),
    );
  });
});

describe('the form of a trace', () => {
  const csv = 'arrival,input,output\n0,1,1';
  const jsonl = '{"timestamp": 0, "input_length": 1, "output_length": 1}';

  it('follows the file name', () => {
    assert.equal(parseTrace(csv, 'a.CSV').inputTokens.length, 1);
    assert.equal(parseTrace(jsonl, 'a.jsonl').inputTokens.length, 1);
    assert.throws(() => parseTrace(csv, 'a.jsonl'), { code: 'TRACE_MALFORMED_LINE' });
    assert.throws(() => parseTrace(jsonl, 'a.csv'), SimulatorError);
  });

  it('is seen from the text when the name does not say', () => {
    assert.equal(parseTrace(csv, 'stdin').inputTokens.length, 1);
    assert.equal(parseTrace(`\n${jsonl}`, 'stdin').inputTokens.length, 1);
  });
});
