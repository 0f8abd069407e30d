import { traceError } from '../simulator-error.ts';
import { benchmarkTrace, isBenchmarkResult, readBenchmarkResult } from './benchmark-result.ts';
import { agentSessionsTrace, conversationsTrace, isAgentSession, isConversations } from './conversations.ts';
import { CsvTraceParser } from './csv-trace.ts';
import { JsonlTraceParser } from './jsonl-trace.ts';
import type { ReadTrace } from './request-reader.ts';
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

/** A parser of one JSON document: a benchmark's result, an agent's session, conversations, or a list of requests. */
class ResultParser implements TraceParser {
  readonly #source: string;
  readonly #options: TraceOptions & { readonly load?: number };
  readonly #pieces: string[] = [];

  constructor(source: string, options: TraceOptions & { readonly load?: number }) {
    this.#source = source;
    this.#options = options;
  }

  push(text: string): void {
    this.#pieces.push(text);
  }

  end(): ReadTrace {
    let value: unknown;
    try {
      value = JSON.parse(this.#pieces.join(''));
    } catch (error) {
      throw traceError('TRACE_MALFORMED_LINE', this.#source, null, 'JSON', (error as Error).message);
    }
    if (isAgentSession(value)) return agentSessionsTrace([{ source: this.#source, value }], this.#source);
    if (Array.isArray(value) && isConversations(value)) return conversationsTrace(value, this.#source);
    if (Array.isArray(value) && !isBenchmarkResult(value)) {
      const parser = new JsonlTraceParser(this.#source, this.#options);
      for (const entry of value) parser.push(`${JSON.stringify(entry)}\n`);
      return parser.end();
    }
    const { load, ...options } = this.#options;
    return benchmarkTrace(readBenchmarkResult(value, this.#source), this.#source, { load, options });
  }
}

/** A parser of a text that comes in pieces. `load` chooses among the loads of a benchmark's result. */
export function traceParser(
  kind: TraceText,
  source: string,
  options: TraceOptions & { readonly load?: number } = {},
): TraceParser {
  if (kind === 'csv') return new CsvTraceParser(source, options);
  return kind === 'jsonl' ? new JsonlTraceParser(source, options) : new ResultParser(source, options);
}

/**
 * Reads a trace in CSV (see `CsvTraceParser`), JSONL (see `JsonlTraceParser`) or the result of a benchmark (see
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
