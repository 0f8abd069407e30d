import { CommanderError } from 'commander';
import { codeOf, isInputError } from './input-error.ts';
import { InterruptedError } from './interrupted-error.ts';

/** 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM, 1 for an internal failure, 0 for `--help` and `--version`. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof InterruptedError) return error.exitCode;
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  return isInputError(error) ? 2 : 1;
}

/**
 * One line for standard error, with the stable code of bad input at its end, as OpenEnv has it in messages.
 * `SERVEGYM_DEBUG=1` in the environment adds the stack of an internal failure.
 */
export function failureMessage(error: unknown): string {
  if (!(error instanceof Error)) return `internal failure: ${String(error)}`;
  if (error instanceof InterruptedError) return error.message;
  if (isInputError(error)) return withCode(error.message, codeOf(error));
  const detail = process.env.SERVEGYM_DEBUG === '1' ? error.stack : error.message;
  return `internal failure: ${detail}`;
}

/** A message with its code, where it has one. */
export function withCode(message: string, code: string | undefined): string {
  // Some messages open with their code.
  return code === undefined || message.includes(code) ? message : `${message} (code: ${code})`;
}
