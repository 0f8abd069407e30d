import { parseCsvTrace } from './csv-trace.ts';
import { parseJsonlTrace } from './jsonl-trace.ts';
import type { Trace } from './trace.ts';

/**
 * Reads a trace in CSV (see `parseCsvTrace`) or JSONL (see `parseJsonlTrace`), told apart by the end of the file name,
 * else by whether the text starts with `{`.
 *
 * @param source File name, for the format and the messages.
 * @throws {TraceError} with the line that is wrong.
 */
export function parseTrace(text: string, source: string): Trace {
  const isJsonl = /\.(jsonl|ndjson)$/i.test(source) || (!/\.csv$/i.test(source) && /^\s*\{/.test(text));
  return isJsonl ? parseJsonlTrace(text, source) : parseCsvTrace(text, source);
}
