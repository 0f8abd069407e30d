import Papa from 'papaparse';
import { quoteField, traceError } from '../simulator-error.ts';
import { recordSplitter } from './record-splitter.ts';
import { RequestReader } from './request-reader.ts';
import type { TraceOptions, TraceParser } from './trace.ts';

/**
 * Reads a trace with a header and a line a request, in order of arrival: the Azure LLM inference traces
 * (`TIMESTAMP,ContextTokens,GeneratedTokens`), BurstGPT, Vidur, ServeGen, or any table whose header names an arrival
 * (`arrival_time` in s, `arrival_ms`, or a date and time, in UTC unless it says otherwise), an input and an output
 * length. Fields are separated by `, ; |` or tabs, as the header shows. Further columns are ignored.
 * @param source File name for the messages.
 */
export function csvTraceParser(source: string, options: TraceOptions = {}): TraceParser {
  let reader: RequestReader | undefined;
  let delimiter = ',';
  let width = 0;
  let isBlank = true;
  const malformed = (line: number, got: string) =>
    traceError('TRACE_MALFORMED_LINE', source, line, `values separated by ${quoteField(delimiter)}`, got);
  const take = (fields: readonly string[], line: number) => {
    if (reader === undefined) {
      width = fields.length;
      reader = new RequestReader([...fields], { kind: 'CSV', source, line, options });
      return;
    }
    if (fields.length !== width) {
      const expected = `${width} fields, as the header has`;
      throw traceError('TRACE_COLUMN_COUNT', source, line, expected, `${fields.length}`);
    }
    const { arrival, input, output, adapter } = reader.columns;
    // Spreadsheets that separate by semicolons write decimal commas.
    const at = delimiter === ';' ? fields[arrival].replace(',', '.') : fields[arrival];
    const content = adapter === -1 ? undefined : { adapter: fields[adapter] };
    reader.add(line, at, fields[input], fields[output], content);
  };
  const splitter = recordSplitter(source, true, (text, firstLine) => {
    if (text.trim() === '') return;
    if (reader === undefined) delimiter = delimiterOf(text);
    forEachCsvRecord(text, firstLine, malformed, take, delimiter);
  });
  return {
    push(text) {
      if (isBlank && text.trim() !== '') isBlank = false;
      splitter.push(text);
    },
    end() {
      splitter.end();
      if (reader !== undefined && !isBlank) return reader.end();
      throw traceError('TRACE_EMPTY', source, null, 'a header and requests', 'an empty file');
    },
  };
}

/** The character that separates most fields of the header. */
function delimiterOf(text: string): string {
  const [header] = text.trimStart().split('\n', 1);
  const count = (delimiter: string) => header.split(delimiter).length;
  return [',', ';', '\t', '|'].reduce((best, other) => (count(other) > count(best) ? other : best));
}

type Malformed = (line: number, got: string) => Error;
type Visit = (fields: readonly string[], line: number) => void;

/**
 * Calls `visit` with the fields of every record that is not empty and the line it ends on. Follows RFC 4180, with
 * either line ending. The array is reused between calls. `firstLine` is the place of the text in its file;
 * `malformed` makes the error of a record that is none.
 */
export function forEachCsvRecord(
  text: string,
  firstLine: number,
  malformed: Malformed,
  visit: Visit,
  delimiter = ',',
): void {
  // Without quotes a record is a line, which a plain scan reads ten times faster than a general parser.
  if (text.includes('"')) visitQuoted(text, firstLine, malformed, visit, delimiter);
  else visitPlain(text, firstLine, visit, delimiter);
}

function visitPlain(text: string, firstLine: number, visit: Visit, delimiter: string): void {
  const fields: string[] = [];
  let start = 0;
  for (let line = firstLine; start < text.length; line += 1) {
    const newline = text.indexOf('\n', start);
    const next = newline === -1 ? text.length : newline;
    const end = text.charCodeAt(next - 1) === 13 && next > start ? next - 1 : next;
    if (end > start) {
      let field = 0;
      let at = text.indexOf(delimiter, start);
      for (; at !== -1 && at < end; at = text.indexOf(delimiter, start)) {
        fields[field++] = text.slice(start, at);
        start = at + 1;
      }
      fields[field] = text.slice(start, end);
      fields.length = field + 1;
      visit(fields, line);
    }
    start = next + 1;
  }
}

function visitQuoted(
  text: string,
  firstLine: number,
  malformed: Malformed,
  visit: Visit,
  delimiter: string,
): void {
  let next = firstLine;
  Papa.parse<string[]>(text.replaceAll('\r\n', '\n'), {
    delimiter,
    newline: '\n',
    step({ data: fields, errors: [error] }) {
      if (error) throw malformed(next, error.message);
      const line = next + fields.reduce((sum, field) => sum + field.split('\n').length - 1, 0);
      next = line + 1;
      if (fields.length > 1 || fields[0] !== '') visit(fields, line);
    },
  });
}
