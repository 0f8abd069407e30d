/** Something that the person at the keyboard can correct: a file, an option, a combination of options. */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly isInputError = true;
}
