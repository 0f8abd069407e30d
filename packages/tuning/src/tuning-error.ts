export type TuningErrorCode = 'INVALID_SLO' | 'TOO_FEW_REQUESTS';

/** Input that the caller can correct. */
export class TuningError extends Error {
  override readonly name = 'TuningError';
  readonly isInputError = true;
  readonly code: TuningErrorCode;

  constructor(code: TuningErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
