/**
 * A trace table that cannot be played, or measured from a profile. `code` is stable; the message says what was expected,
 * what came and what to do.
 */
export class TraceTableError extends Error {
  override readonly name = 'TraceTableError';
  readonly isInputError = true;
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
