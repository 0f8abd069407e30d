import { traceError } from '../simulator-error.ts';
import { benchmarkTrace, isBenchmarkResult, readBenchmarkResult } from './benchmark-result.ts';
import { agentSessionsTrace, conversationsTrace, isAgentSession, isConversations } from './conversations.ts';
import { csvTraceParser } from './csv-trace.ts';
import { jsonlTraceParser } from './jsonl-trace.ts';
import type { Trace, TraceOptions, TraceParser } from './trace.ts';

/** Formats of a text. */
export type TraceText = 'csv' | 'jsonl' | 'json';

/**
 * Format of a text, by the end of the file name, else by how it starts. One JSON document over several lines, or one
 * that is a benchmark's result, is `json`.
 *
 * @param start The first thousands of characters of the text, or all of it.
 */
export function traceTextOf(source: string, start: string): TraceText {
  if (/\.(jsonl|ndjson)$/i.test(source)) return 'jsonl';
  if (/\.csv$/i.test(source)) return 'csv';
  const text = start.replace(/^\ufeff/, '').trimStart();
  if (/\.json$/i.test(source)) return /^\{[^\n]*\}\s*\n\s*\{/.test(text) ? 'jsonl' : 'json';
  if (!/^[{[]/.test(text)) return 'csv';
  if (/^\{[^\n]*"(input_lens|benchmarks)":/.test(text)) return 'json';
  return /^\{[^\n]*\}\s*(\n|$)/.test(text) ? 'jsonl' : 'json';
}

type ParserOptions = TraceOptions & { readonly load?: number };

/** A parser of one JSON document: a benchmark's result, an agent's session, conversations, or a list of requests. */
function documentParser(source: string, { load, ...options }: ParserOptions): TraceParser {
  const pieces: string[] = [];
  return {
    push(text) {
      pieces.push(text);
    },
    end() {
      let value: unknown;
      try {
        value = JSON.parse(pieces.join(''));
      } catch (error) {
        throw traceError('TRACE_MALFORMED_LINE', source, null, 'JSON', (error as Error).message);
      }
      if (isAgentSession(value)) return agentSessionsTrace([{ source, value }], source);
      if (Array.isArray(value) && isConversations(value)) return conversationsTrace(value, source);
      if (!Array.isArray(value) || isBenchmarkResult(value))
        return benchmarkTrace(readBenchmarkResult(value, source), source, { load, options });
      const parser = jsonlTraceParser(source, options);
      for (const entry of value) parser.push(`${JSON.stringify(entry)}\n`);
      return parser.end();
    },
  };
}

/** A parser of a text that comes in pieces. `load` chooses among the loads of a benchmark's result. */
export function traceParser(kind: TraceText, source: string, options: ParserOptions = {}): TraceParser {
  if (kind === 'csv') return csvTraceParser(source, options);
  return kind === 'jsonl' ? jsonlTraceParser(source, options) : documentParser(source, options);
}

/**
 * Reads a trace in CSV (see `csvTraceParser`), JSONL (see `jsonlTraceParser`) or the result of a benchmark (see
 * `readBenchmarkResult`), told apart by `traceTextOf`.
 *
 * @param source File name, for the format and the messages.
 * @throws {SimulatorError} with the line that is wrong.
 */
export function parseTrace(text: string, source: string, options: TraceOptions = {}): Trace {
  const parser = traceParser(traceTextOf(source, text), source, options);
  parser.push(text);
  return parser.end().trace;
}
