/** Codes of faults of a trace. */
export type TraceErrorCode =
  /** Nothing in the file. */
  | 'TRACE_EMPTY'
  /** A header and nothing below it. */
  | 'TRACE_NO_REQUESTS'
  /** No column for the arrival, the prompt or the output. */
  | 'TRACE_MISSING_COLUMN'
  /** A column that was asked for by name and is not there. */
  | 'TRACE_UNKNOWN_COLUMN'
  /** A line that is not CSV, not JSON, or not an object. */
  | 'TRACE_MALFORMED_LINE'
  /** More or fewer fields than the header has. */
  | 'TRACE_COLUMN_COUNT'
  /** A length that is not a whole number. */
  | 'TRACE_NOT_AN_INTEGER'
  /** A length that is negative, zero, or above `MAX_REQUEST_TOKENS`. */
  | 'TRACE_LENGTH_RANGE'
  /** An arrival that is neither a number nor a time, or not what those before it are. */
  | 'TRACE_TIMESTAMP'
  /** Some times name their zone and some do not. */
  | 'TRACE_TIME_ZONES'
  /** An arrival before the one on the line above. */
  | 'TRACE_TIME_BACKWARDS'
  /** Prefix block hashes that are not a list of whole numbers, or more of them than the prompt has blocks. */
  | 'TRACE_HASH_IDS'
  /** A conversation that lacks what a trace needs. */
  | 'TRACE_CONVERSATION'
  /** A benchmark's result that lacks what a trace needs, or has several loads in it. */
  | 'TRACE_BENCHMARK'
  /** Asked for something that the trace cannot give, for instance none of its requests. */
  | 'TRACE_OPTION';

/** A trace that cannot be read, with the place to look at. */
export class TraceError extends Error {
  override readonly name = 'TraceError';
  readonly isInputError = true;
  readonly code: TraceErrorCode;
  /** File name, as the caller gave it. */
  readonly source: string;
  /** 1 is the first line of the file; `null` when no single line is to blame. */
  readonly line: number | null;
  readonly expected: string;
  readonly got: string;
  constructor(code: TraceErrorCode, source: string, line: number | null, expected: string, got: string) {
    super(`${line === null ? source : `${source}:${line}`}: expected ${expected}, got ${got}`);
    this.code = code;
    this.source = source;
    this.line = line;
    this.expected = expected;
    this.got = got;
  }
}

/** Shows a field of a file in a message: quoted, and cut when long. */
export function quoteField(field: unknown): string {
  const text = JSON.stringify(field) ?? String(field);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
