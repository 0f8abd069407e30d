import { forEachCsvRecord } from './csv-records.ts';
import { RecordSplitter } from './record-splitter.ts';
import { type ReadTrace, RequestReader } from './request-reader.ts';
import type { Trace } from './trace.ts';
import { TraceError } from './trace-error.ts';
import type { TraceOptions } from './trace-options.ts';
import type { TraceParser } from './trace-parser.ts';

/**
 * Reads a trace with a header and a line a request, in order of arrival: the Azure LLM inference traces
 * (`TIMESTAMP,ContextTokens,GeneratedTokens`), BurstGPT, Vidur, ServeGen, or any table whose header names an arrival
 * (`arrival_time` in s, `arrival_ms`, or a date and time, in UTC unless it says otherwise), an input and an output
 * length. Further columns are ignored.
 */
export class CsvTraceParser implements TraceParser {
  readonly #source: string;
  readonly #options: TraceOptions;
  readonly #splitter: RecordSplitter;
  #reader: RequestReader | undefined;
  #width = 0;
  #isBlank = true;

  /** @param source File name for the messages. */
  constructor(source: string, options: TraceOptions = {}) {
    this.#source = source;
    this.#options = options;
    this.#splitter = new RecordSplitter(source, { quoted: true }, (text, firstLine) =>
      this.#take(text, firstLine),
    );
  }

  push(text: string): void {
    if (this.#isBlank && text.trim() !== '') this.#isBlank = false;
    this.#splitter.push(text);
  }

  end(): ReadTrace {
    this.#splitter.end();
    if (this.#reader === undefined || this.#isBlank) {
      throw new TraceError('TRACE_EMPTY', this.#source, null, 'a header and requests', 'an empty file');
    }
    return this.#reader.end();
  }

  #take(text: string, firstLine: number): void {
    if (text.trim() === '') return;
    const source = this.#source;
    forEachCsvRecord(text, source, firstLine, (fields, line) => {
      if (this.#reader === undefined) {
        this.#width = fields.length;
        this.#reader = new RequestReader([...fields], { kind: 'CSV', source, line, options: this.#options });
        return;
      }
      if (fields.length !== this.#width) {
        throw new TraceError(
          'TRACE_COLUMN_COUNT',
          source,
          line,
          `${this.#width} fields, as the header has`,
          `${fields.length}`,
        );
      }
      const { arrival, input, output } = this.#reader.columns;
      this.#reader.add(line, fields[arrival], fields[input], fields[output]);
    });
  }
}

/** The trace in a text, as `CsvTraceParser` reads it. @throws {TraceError} with the line that is wrong. */
export function parseCsvTrace(text: string, source: string, options: TraceOptions = {}): Trace {
  const parser = new CsvTraceParser(source, options);
  parser.push(text);
  return parser.end().trace;
}
