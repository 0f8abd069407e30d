/** Codes of what the simulator cannot work with. */
export type SimulatorErrorCode =
  /** An option of an engine, a configuration of it, or a request that it cannot take. */
  | 'ENGINE_OPTION'
  | 'ENGINE_CONFIG'
  | 'ENGINE_REQUEST'
  /** A setting or option of a fleet. */
  | 'FLEET_SETTING'
  /** A configuration that cannot be simulated: the profile lacks something, or nothing is left for KV. */
  | 'SIMULATION_OPTION'
  /** A policy that is not functions of the names that there are. */
  | 'POLICY'
  /** A precision of the weights that a profile does not have. */
  | 'PROFILE_VARIANT'
  /** An acceptance table that a profile does not have. */
  | 'PROFILE_ACCEPTANCE'
  /** Nothing in the file of a trace. */
  | 'TRACE_EMPTY'
  /** A header and nothing below it. */
  | 'TRACE_NO_REQUESTS'
  /** More requests than a trace may have, or a file that expands to too much. */
  | 'TRACE_TOO_LARGE'
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

/** Settings, a profile or a trace that cannot be simulated. */
export class SimulatorError extends Error {
  override readonly name = 'SimulatorError';
  readonly isInputError = true;
  readonly code: SimulatorErrorCode;
  /** The setting at fault, or the option with which a trace can be read. */
  readonly field: string | undefined;
  /** Line of a trace, the first is 1; `null` when no single line is to blame. */
  readonly line: number | null;
  constructor(
    code: SimulatorErrorCode,
    message: string,
    { field, line = null }: { readonly field?: string; readonly line?: number | null } = {},
  ) {
    super(message);
    this.code = code;
    this.field = field;
    this.line = line;
  }
}

/** The error of a setting that is out of range. */
export function wrongSetting(
  code: SimulatorErrorCode,
  field: string,
  expected: string,
  got: unknown,
): SimulatorError {
  const message = `Expected \`${field}\` to be ${expected}, got \`${String(got)}\` (${typeof got})`;
  return new SimulatorError(code, message, { field });
}

/**
 * The error of a trace that cannot be read.
 * @param source File name, as the caller gave it.
 * @param option The option of `TraceOptions`, or `load`, with which it can be.
 */
export function traceError(
  code: SimulatorErrorCode & `TRACE_${string}`,
  source: string,
  line: number | null,
  expected: string,
  got: string,
  option?: string,
): SimulatorError {
  const place = line === null ? source : `${source}:${line}`;
  return new SimulatorError(code, `${place}: expected ${expected}, got ${got}`, { line, field: option });
}

/** Shows a field of a file in a message: quoted, and cut when long. */
export function quoteField(field: unknown): string {
  const text = JSON.stringify(field) ?? String(field);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
