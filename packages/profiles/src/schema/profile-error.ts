/** Codes of faults of an engine profile. */
export type ProfileErrorCode =
  /** Not JSON. */
  | 'PROFILE_SYNTAX'
  /** A field that is missing, of the wrong type, or out of its range. */
  | 'PROFILE_FIELD'
  /** No profile of this name in the catalog. */
  | 'PROFILE_UNKNOWN';

/** A profile that cannot be used. */
export class ProfileError extends Error {
  override readonly name = 'ProfileError';
  readonly isInputError = true;
  readonly code: ProfileErrorCode;
  /** File or profile name, as the caller gave it. */
  readonly source: string;
  /** Path of the field, for instance `weights.FP16.law.baseUs`; empty for the whole profile. */
  readonly field: string;
  readonly expected: string;
  readonly got: string;
  constructor(code: ProfileErrorCode, source: string, field: string, expected: string, got: string) {
    super(`${source}: expected ${field === '' ? '' : `\`${field}\` to be `}${expected}, got ${got}`);
    this.code = code;
    this.source = source;
    this.field = field;
    this.expected = expected;
    this.got = got;
  }
}
