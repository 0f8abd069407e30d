import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { SimulatorError, type SimulatorErrorCode } from '../simulator-error.ts';
import { parseTrace } from './parse-trace.ts';

const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';

/** A trace file with this as its third line. */
function withLine(line: string): string {
  return `${HEADER}\n2023-11-16 18:15:46.6805900,374,44\n${line}\n`;
}

describe('a trace in CSV', () => {
  it('is read in the Azure form, with arrivals counted from the first', () => {
    const trace = parseTrace(
      `${withLine('2023-11-16 18:15:50.9951690,396,109').replaceAll('\n', '\r\n')}`,
      'azure.csv',
    );
    assert.equal(trace.source, 'azure.csv');
    assert.deepEqual([...trace.inputTokens], [374, 396]);
    assert.deepEqual([...trace.outputTokens], [44, 109]);
    assert.equal(trace.arrivalMs[0], 0);
    assert.ok(Math.abs(trace.arrivalMs[1] - 4314.579) < 1e-7, `${trace.arrivalMs[1]}`);
    assert.equal(trace.prefixBlocks, undefined);
  });

  it('names the adapters of its requests, and the base model where there is none', () => {
    const { adapters } = parseTrace(
      'arrival,isl,osl,LoRA\n0,9,1,sql\n1,9,1,\n2,9,1,base\n3,9,1,chat\n4,9,1,sql',
      'x.csv',
    );
    assert.deepEqual(
      [adapters?.names, [...adapters!.of]],
      [
        ['sql', 'chat'],
        [1, 0, 0, 2, 1],
      ],
    );
    assert.equal(parseTrace(withLine('2023-11-16 18:15:50,396,109'), 'x.csv').adapters, undefined);
  });

  it('keeps a tenth of a microsecond, over midnight too', () => {
    const trace = parseTrace(
      `${HEADER}\n2023-12-31 23:59:59.9999999,1,1\n2024-01-01 00:00:00.0000001,1,1`,
      'x.csv',
    );
    assert.ok(Math.abs(trace.arrivalMs[1] - 0.0002) < 1e-7, `${trace.arrivalMs[1]}`);
  });

  it('takes a time without a zone as UTC', () => {
    const zoned = ['2024-05-10 02:00:00+02:00,1,1', '2024-05-10T00:00:02Z,1,1'];
    assert.deepEqual([...parseTrace([HEADER, ...zoned].join('\n'), 'x.csv').arrivalMs], [0, 2000]);
    const bare = ['2024-05-10 23:59:59,1,1', '2024-05-11 00:00:01,1,1'];
    assert.deepEqual([...parseTrace([HEADER, ...bare].join('\n'), 'x.csv').arrivalMs], [0, 2000]);
  });

  it('finds the columns by name, in any order, in s or in ms', () => {
    const seconds = 'model,response_tokens,Prompt Tokens,arrival_time\na,5,7,10.5\nb,6,8,12';
    const milliseconds = 'input,arrival_ms,output\n7,10500,5\n8,12000,6';
    for (const text of [seconds, milliseconds]) {
      const trace = parseTrace(text, 'x.csv');
      assert.deepEqual([...trace.arrivalMs], [0, 1500]);
      assert.deepEqual([...trace.inputTokens], [7, 8]);
      assert.deepEqual([...trace.outputTokens], [5, 6]);
    }
  });

  it('is read the same with quotes and without', () => {
    const field = fc.constantFrom('a', 'b c', '', '-1');
    const row = fc.record({
      gap: fc.nat(1e6),
      input: fc.integer({ min: 1, max: 1e6 }),
      output: fc.integer({ min: 1, max: 1e6 }),
      note: field,
    });
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 30 }),
        fc.constantFrom('\n', '\r\n'),
        (rows, newline) => {
          let at = 0;
          const table = rows.map(({ gap, input, output, note }) => {
            at += gap;
            return [at, note, input, output];
          });
          const header = ['arrival_ms', 'note', 'input', 'output'];
          const plain = [header, ...table].map((fields) => fields.join(',')).join(newline);
          const quoted = [header, ...table]
            .map((fields) => fields.map((f) => `"${f}"`).join(','))
            .join(newline);
          const trace = parseTrace(plain, 'x.csv');
          assert.deepEqual(parseTrace(quoted, 'x.csv'), trace);
          assert.deepEqual(
            [...trace.outputTokens],
            rows.map(({ output }) => output),
          );
          assert.deepEqual(
            [...trace.arrivalMs],
            table.map(([ms]) => (ms as number) - (table[0][0] as number)),
          );
        },
      ),
    );
  });

  const refused: readonly [what: string, text: string, code: SimulatorErrorCode, line: number | null][] = [
    ['an empty file', '', 'TRACE_EMPTY', null],
    ['blank lines', '\n \n', 'TRACE_EMPTY', null],
    ['a header and nothing else', `${HEADER}\n`, 'TRACE_NO_REQUESTS', null],
    ['a missing column', 'TIMESTAMP,ContextTokens\n1,2', 'TRACE_MISSING_COLUMN', 1],
    ['a file without a header', '2023-11-16 18:15:46.6805900,374,44\n', 'TRACE_MISSING_COLUMN', 1],
    ['too few columns', withLine('2023-11-16 18:15:50.9951690,396'), 'TRACE_COLUMN_COUNT', 3],
    ['too many columns', withLine('2023-11-16 18:15:50.9951690,396,109,1'), 'TRACE_COLUMN_COUNT', 3],
    ['a negative length', withLine('2023-11-16 18:15:50,-5,109'), 'TRACE_LENGTH_RANGE', 3],
    ['a length of zero', withLine('2023-11-16 18:15:50,396,0'), 'TRACE_LENGTH_RANGE', 3],
    ['a huge length', withLine('2023-11-16 18:15:50,99999999999999999999,1'), 'TRACE_LENGTH_RANGE', 3],
    ['a fraction of a token', withLine('2023-11-16 18:15:50,39.5,1'), 'TRACE_NOT_AN_INTEGER', 3],
    ['no length', withLine('2023-11-16 18:15:50,,1'), 'TRACE_NOT_AN_INTEGER', 3],
    ['a word for a length', withLine('2023-11-16 18:15:50,many,1'), 'TRACE_NOT_AN_INTEGER', 3],
    ['a hexadecimal length', withLine('2023-11-16 18:15:50,0x10,1'), 'TRACE_NOT_AN_INTEGER', 3],
    ['a word for a time', withLine('yesterday,396,109'), 'TRACE_TIMESTAMP', 3],
    ['no time', withLine(',396,109'), 'TRACE_TIMESTAMP', 3],
    ['a time years after the first', withLine('2026-11-16 18:15:50,396,109'), 'TRACE_TIMESTAMP', 3],
    ['an infinite time', withLine('Infinity,396,109'), 'TRACE_TIMESTAMP', 3],
    ['a day that does not exist', withLine('2023-02-30 18:15:50,396,109'), 'TRACE_TIMESTAMP', 3],
    ['an hour that does not exist', withLine('2023-11-16 24:15:50,396,109'), 'TRACE_TIMESTAMP', 3],
    ['a time zone where there was none', withLine('2023-11-16 18:15:50Z,396,109'), 'TRACE_TIME_ZONES', 3],
    ['a number where there was a date', withLine('1700158550,396,109'), 'TRACE_TIMESTAMP', 3],
    [
      'a time that goes backwards',
      withLine('2023-11-16 18:15:46.6805899,396,109'),
      'TRACE_TIME_BACKWARDS',
      3,
    ],
    ['a quote that is not closed', withLine('"2023-11-16 18:15:50,396,109'), 'TRACE_MALFORMED_LINE', 3],
    ['a bad length in quotes', withLine('"2023-11-16 18:15:50","-5","109"'), 'TRACE_LENGTH_RANGE', 3],
  ];
  for (const [what, text, code, line] of refused) {
    it(`is refused for ${what}`, () => {
      assert.throws(
        () => parseTrace(text, 'bad.csv'),
        (error) => {
          assert.ok(error instanceof SimulatorError, String(error));
          assert.equal(error.code, code);
          assert.equal(error.line, line);
          assert.ok(
            error.message.startsWith(line === null ? 'bad.csv: ' : `bad.csv:${line}: `),
            error.message,
          );
          assert.match(error.message, /expected .+, got .+/);
          return true;
        },
      );
    });
  }

  it('answers any text with a trace or a SimulatorError', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('"', ',', '\n', '\r', '1', '-1', HEADER, '2023-11-16 18:15:50'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        try {
          parseTrace(`${HEADER}\n${pieces.join('')}`, 'x.csv');
        } catch (error) {
          assert.ok(error instanceof SimulatorError, String(error));
        }
      }),
    );
  });
});
