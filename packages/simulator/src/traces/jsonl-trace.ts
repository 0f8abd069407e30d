import { COLUMN_EXAMPLES, type ColumnMeaning, columnMeaning } from './columns.ts';
import { parseDateTime, type Timestamp } from './timestamp.ts';
import type { Trace } from './trace.ts';
import { TraceBuilder } from './trace-builder.ts';
import { quoteField, TraceError } from './trace-error.ts';

/** Tokens that one of Mooncake's `hash_ids` stands for. */
const MOONCAKE_BLOCK_TOKENS = 512;

/**
 * Reads a trace with a JSON object a line, in order of arrival: Mooncake's form (`timestamp` in ms, `input_length`,
 * `output_length`, and optionally `hash_ids`, the prefix block hashes) or any keys that `parseCsvTrace` takes as
 * columns. Further keys are ignored.
 *
 * @param source File name for the messages.
 * @param options.prefixBlockTokens Tokens that one hash stands for. Default: 512, as in Mooncake's traces.
 * @throws {TraceError} with the line that is wrong.
 */
export function parseJsonlTrace(
  text: string,
  source: string,
  { prefixBlockTokens = MOONCAKE_BLOCK_TOKENS }: { readonly prefixBlockTokens?: number } = {},
): Trace {
  if (text.trim() === '')
    throw new TraceError('TRACE_EMPTY', source, null, 'a JSON object a line', 'an empty file');
  const lines = text.split('\n');
  const builder = new TraceBuilder(source, lines.length, prefixBlockTokens);
  const meanings = new Map<string, ColumnMeaning | undefined>();
  for (const [index, content] of lines.entries()) {
    if (content.trim() === '') continue;
    const line = index + 1;
    const entry = parseLine(content, source, line);
    let arrival: Timestamp | undefined;
    let input: number | undefined;
    let output: number | undefined;
    let hashIds: unknown;
    for (const key in entry) {
      let meaning = meanings.get(key);
      if (meaning === undefined && !meanings.has(key)) {
        meaning = columnMeaning(key, 1);
        meanings.set(key, meaning);
      }
      if (meaning?.field === 'arrival')
        arrival ??= readArrival(entry[key], key, meaning.unitMs ?? 1, source, line);
      else if (meaning?.field === 'input') input ??= builder.length(line, key, entry[key]);
      else if (meaning?.field === 'output') output ??= builder.length(line, key, entry[key]);
      else if (meaning?.field === 'prefix') hashIds = entry[key];
    }
    if (arrival === undefined) throw missing('arrival', entry, source, line);
    if (input === undefined) throw missing('input', entry, source, line);
    if (output === undefined) throw missing('output', entry, source, line);
    builder.add(line, arrival, input, output, hashIds);
  }
  return builder.build();
}

function parseLine(content: string, source: string, line: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    throw new TraceError('TRACE_MALFORMED_LINE', source, line, 'a JSON object', quoteField(content.trim()));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TraceError('TRACE_MALFORMED_LINE', source, line, 'a JSON object', quoteField(value));
  }
  return value as Record<string, unknown>;
}

function readArrival(value: unknown, key: string, unitMs: number, source: string, line: number): Timestamp {
  if (typeof value === 'number' && Number.isFinite(value)) return { dayMs: 0, ms: value * unitMs };
  const timestamp = typeof value === 'string' ? parseDateTime(value.trim()) : null;
  if (timestamp !== null) return timestamp;
  const expected = `${key} to be a number or a time such as "2023-11-16T18:15:46.680Z"`;
  throw new TraceError('TRACE_TIMESTAMP', source, line, expected, quoteField(value));
}

function missing(
  field: 'arrival' | 'input' | 'output',
  entry: Record<string, unknown>,
  source: string,
  line: number,
): TraceError {
  const expected = `a key for the ${field} (${COLUMN_EXAMPLES[field].replace('TIMESTAMP', 'timestamp')})`;
  return new TraceError(
    'TRACE_MISSING_COLUMN',
    source,
    line,
    expected,
    quoteField(Object.keys(entry).join(', ')),
  );
}
