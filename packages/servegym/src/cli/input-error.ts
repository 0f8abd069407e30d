import type { JobFailure } from '@servegym/jobs';

/** Stable codes of what commands refuse by themselves. Errors of the packages below have codes of their own. */
export type InputErrorCode =
  /** Options or names that are unknown, out of range, or do not go together. */
  | 'INVALID_COMMAND_LINE'
  /** A file whose content cannot be used. */
  | 'INVALID_FILE'
  | 'FILE_UNREADABLE'
  | 'FILE_UNWRITABLE'
  /** A host or a port that cannot be listened on. */
  | 'ADDRESS_UNUSABLE'
  /** Sessions or a season that cannot be kept where the options say. */
  | 'STORE_ERROR'
  | 'SERVER_UNREACHABLE'
  /** An optional npm package that is not installed. */
  | 'PACKAGE_MISSING'
  /** A load that nobody has allowed. */
  | 'NOT_ALLOWED'
  /** A Node older than the package needs. */
  | 'NODE_TOO_OLD';

/** Something that the person at the keyboard can correct: a file, an option, a combination of options. */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly isInputError = true;
  /** One of `InputErrorCode`, or that of the cause. */
  readonly code: string;

  constructor(
    message: string,
    { code, cause }: { readonly code?: InputErrorCode; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code ?? codeOf(cause) ?? 'INVALID_COMMAND_LINE';
  }
}

/**
 * True where the caller can correct what is wrong. Errors of all packages say so by `isInputError`, which jobs carry across
 * threads and queues.
 */
export function isInputError(error: unknown): error is Error & { readonly isInputError: true } {
  return (Object(error) as { isInputError?: unknown }).isInputError === true;
}

/** Stable code of bad input: its own, or that of the job that found it. */
export function codeOf(error: unknown): string | undefined {
  if (!isInputError(error)) return undefined;
  const { code, failure } = error as { readonly code?: string; readonly failure?: JobFailure };
  return failure === undefined ? code : failure.code;
}
