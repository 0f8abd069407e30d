import type { ValidationIssue } from '../protocol/validation-issue.ts';

/** An input that its schema refuses. Becomes HTTP 422, or `VALIDATION_ERROR` on a WebSocket. */
export class InvalidInputError extends Error {
  override readonly name = 'InvalidInputError';
  readonly isInputError = true;
  readonly code = 'VALIDATION_ERROR';
  readonly issues: readonly ValidationIssue[];
  constructor(issues: readonly ValidationIssue[]) {
    super(issues.map((issue) => `${issue.loc.join('.') || 'input'}: ${issue.msg}`).join('; '));
    this.issues = issues;
  }

  /** The same issues, seen from a larger input that holds this one at `path`. */
  at(...path: (string | number)[]): InvalidInputError {
    return new InvalidInputError(this.issues.map((issue) => ({ ...issue, loc: [...path, ...issue.loc] })));
  }
}

/** Reads a part of a larger input, in which it stands at `path`. @throws InvalidInputError with places in the larger one */
export function readAt<T>(path: readonly (string | number)[], read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof InvalidInputError ? error.at(...path) : error;
  }
}
