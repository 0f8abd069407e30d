/** Codes of faults of the input of a calibration. */
export type CalibrationErrorCode =
  /** A file that cannot be read as measurements. */
  | 'CALIBRATION_FILE'
  /** No measurement is left after the selection, or too few to fit. */
  | 'CALIBRATION_ROWS'
  /** A GPU or model that is not known, or a description of one that is wrong. */
  | 'CALIBRATION_HARDWARE'
  /** Kernel tables that lack what a model on a GPU needs. */
  | 'CALIBRATION_TABLES';

/** Measurements that no profile can be made of. */
export class CalibrationError extends Error {
  override readonly name = 'CalibrationError';
  readonly isInputError = true;
  readonly code: CalibrationErrorCode;
  constructor(code: CalibrationErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
