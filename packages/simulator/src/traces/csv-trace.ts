import { COLUMN_EXAMPLES, columnMeaning } from './columns.ts';
import { forEachCsvRecord } from './csv-records.ts';
import { parseDateTime, type Timestamp } from './timestamp.ts';
import type { Trace } from './trace.ts';
import { TraceBuilder } from './trace-builder.ts';
import { quoteField, TraceError } from './trace-error.ts';

interface Column {
  readonly index: number;
  readonly name: string;
  /** ms in one unit of a plain number. */
  readonly unitMs: number;
}

/**
 * Reads a trace with a header and a line a request, in order of arrival: the Azure LLM inference traces
 * (`TIMESTAMP,ContextTokens,GeneratedTokens`), BurstGPT, Vidur, or any table whose header names an arrival
 * (`arrival_time` in s, `arrival_ms`, or a date and time, in UTC unless it says otherwise), an input and an output
 * length. Further columns are ignored.
 *
 * @param source File name for the messages.
 * @throws {TraceError} with the line that is wrong.
 */
export function parseCsvTrace(text: string, source: string): Trace {
  if (text.trim() === '')
    throw new TraceError('TRACE_EMPTY', source, null, 'a header and requests', 'an empty file');
  let columns: Record<'arrival' | 'input' | 'output', Column> | undefined;
  let width = 0;
  let builder: TraceBuilder | undefined;
  forEachCsvRecord(text, source, (fields, line) => {
    if (columns === undefined || builder === undefined) {
      columns = findColumns(fields, source, line);
      width = fields.length;
      builder = new TraceBuilder(source, countLines(text), 1);
      return;
    }
    if (fields.length !== width) {
      throw new TraceError(
        'TRACE_COLUMN_COUNT',
        source,
        line,
        `${width} fields, as the header has`,
        `${fields.length}`,
      );
    }
    const { arrival, input, output } = columns;
    builder.add(
      line,
      readArrival(fields[arrival.index]!, arrival, source, line),
      builder.length(line, input.name, fields[input.index]),
      builder.length(line, output.name, fields[output.index]),
    );
  });
  if (builder === undefined)
    throw new TraceError('TRACE_EMPTY', source, null, 'a header and requests', 'blank lines');
  return builder.build();
}

function findColumns(
  header: readonly string[],
  source: string,
  line: number,
): Record<'arrival' | 'input' | 'output', Column> {
  const find = (field: 'arrival' | 'input' | 'output'): Column => {
    for (const [index, name] of header.entries()) {
      const meaning = columnMeaning(name, 1000);
      if (meaning?.field === field) return { index, name: name.trim(), unitMs: meaning.unitMs ?? 1 };
    }
    const expected = `a header with a column for the ${field} (${COLUMN_EXAMPLES[field]})`;
    throw new TraceError('TRACE_MISSING_COLUMN', source, line, expected, quoteField(header.join(',')));
  };
  return { arrival: find('arrival'), input: find('input'), output: find('output') };
}

function readArrival(field: string, column: Column, source: string, line: number): Timestamp {
  const text = field.trim();
  const seconds = text === '' ? Number.NaN : Number(text);
  if (Number.isFinite(seconds)) return { dayMs: 0, ms: seconds * column.unitMs };
  const timestamp = parseDateTime(text);
  if (timestamp !== null) return timestamp;
  const expected = `${column.name} to be a number or a time such as 2023-11-16 18:15:46.6805900`;
  throw new TraceError('TRACE_TIMESTAMP', source, line, expected, quoteField(field));
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
