/** Something that the person at the keyboard can correct: a file, an option, a combination of options. */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly isInputError = true;
}

/**
 * True where the caller can correct what is wrong. Errors of all packages say so by `isInputError`, which jobs carry across
 * threads and queues.
 */
export function isInputError(error: unknown): error is Error & { readonly isInputError: true } {
  return (Object(error) as { isInputError?: unknown }).isInputError === true;
}
