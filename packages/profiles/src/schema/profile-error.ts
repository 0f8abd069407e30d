/** Codes of what is wrong with a profile, or with that which one is to be made from. */
export type ProfileErrorCode =
  /** Not JSON. */
  | 'PROFILE_SYNTAX'
  /** A field that is missing, of the wrong type, or out of its range. */
  | 'PROFILE_FIELD'
  /** No profile of this name in the catalog. */
  | 'PROFILE_UNKNOWN'
  /** A file that cannot be read as measurements. */
  | 'CALIBRATION_FILE'
  /** No measurement is left after the selection, or too few to fit. */
  | 'CALIBRATION_ROWS'
  /** A GPU or model that is not known, or a description of one that is wrong. */
  | 'CALIBRATION_HARDWARE'
  /** Kernel tables that lack what a model on a GPU needs. */
  | 'CALIBRATION_TABLES';

/** A profile that cannot be used, or measurements that none can be made of. */
export class ProfileError extends Error {
  override readonly name = 'ProfileError';
  readonly isInputError = true;
  readonly code: ProfileErrorCode;
  /** Path of the field, for instance `weights.FP16.law.baseUs`; empty where no field is to blame. */
  readonly field: string;

  /**
   * @param source File or name, as the caller gave it, with the line where there is one; empty for none.
   * @param of Whose field it is, for instance ` of load 1`.
   */
  constructor(code: ProfileErrorCode, source: string, expected: string, got: string, field = '', of = '') {
    const place = source === '' ? '' : `${source}: `;
    super(`${place}expected ${field === '' ? '' : `\`${field}\`${of} to be `}${expected}, got ${got}`);
    this.code = code;
    this.field = field;
  }
}
