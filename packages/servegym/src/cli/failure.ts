import { constants } from 'node:os';
import type { JobFailure } from '@servegym/jobs';
import { maskUrls } from '@servegym/openenv/mask-urls';
import { CommanderError } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };

/** Exit statuses of all commands, as docs/troubleshooting.md lists them; 130 after Ctrl-C and 143 after SIGTERM beside them. */
export const EXIT_STATUS = {
  /** Done; what was asked holds. */
  yes: 0,
  /** Done; a bound breaks, a check fails, or nothing meets the SLO. */
  no: 1,
  badInput: 2,
  /** Done; too close to tell. */
  undecided: 3,
  /** `EX_SOFTWARE` of sysexits.h. */
  internal: 70,
} as const;

/** Answer of a command that was carried out. */
export type Verdict = 'yes' | 'no' | 'undecided';

/** Exit status of a command that was not carried out; 0 for `--help` and `--version`. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof InterruptedError) return error.exitCode;
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_STATUS.yes : EXIT_STATUS.badInput;
  return isInputError(error) ? EXIT_STATUS.badInput : EXIT_STATUS.internal;
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

/** A file whose content cannot be used. */
export const invalidFile = (message: string, cause?: unknown) =>
  new InputError(message, { code: 'INVALID_FILE', cause });

/** An error of a file of sessions, runs or a season as bad input; another one as it is. */
export function storeFailure(error: unknown): unknown {
  const { code, message } = Object(error) as { code?: string; message: string };
  return code === 'STORE_ERROR' ? new InputError(message, { code, cause: error }) : error;
}

/**
 * True where the caller can correct what is wrong. Errors of all packages say so by `isInputError`, which jobs carry across
 * threads and queues.
 */
export function isInputError(error: unknown): error is Error & { readonly isInputError: true } {
  return (Object(error) as { isInputError?: unknown }).isInputError === true;
}

/** Stable code of bad input: its own, or that of the job that found it. */
function codeOf(error: unknown): string | undefined {
  if (!isInputError(error)) return undefined;
  const { code, failure } = error as { readonly code?: string; readonly failure?: JobFailure };
  return failure === undefined ? code : failure.code;
}

/** Signals that end a command which is no server. */
const INTERRUPTS = ['SIGINT', 'SIGTERM'] as const;
type Interrupt = (typeof INTERRUPTS)[number];

/** Ctrl-C or SIGTERM before a command was done. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
  /** As shells have it: 130 for Ctrl-C, 143 for SIGTERM. */
  readonly exitCode: number;

  constructor(signal: Interrupt, message = 'interrupted') {
    super(message);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** A signal that aborts, with an `InterruptedError`, at the first Ctrl-C or SIGTERM. `close` stops listening. */
export function untilInterrupted(message?: () => string): { readonly signal: AbortSignal; close(): void } {
  const stop = new AbortController();
  const close = onInterrupt((signal) => stop.abort(new InterruptedError(signal, message?.())));
  return { signal: stop.signal, close };
}

/** Calls `onSignal` at the first Ctrl-C or SIGTERM; a second one ends the process. Returns a function that stops listening. */
export function onInterrupt(onSignal: (signal: Interrupt) => void): () => void {
  const listen = (signal: NodeJS.Signals) => {
    unlisten();
    onSignal(signal as Interrupt);
  };
  const unlisten = () => {
    for (const signal of INTERRUPTS) process.off(signal, listen);
  };
  for (const signal of INTERRUPTS) process.on(signal, listen);
  return unlisten;
}

/** The oldest Node that has all that the commands use: `engines` of the package. */
export const OLDEST_NODE = packageJson.engines.node.slice(2);

/** @throws InputError `NODE_TOO_OLD` before a command fails on something that this Node lacks */
export function requireNode(version = process.versions.node): void {
  if (version.localeCompare(OLDEST_NODE, 'en', { numeric: true }) >= 0) return;
  throw new InputError(
    `expected Node ${OLDEST_NODE} or newer, got ${version}: install a newer one, for example with \`nvm install 24\``,
    { code: 'NODE_TOO_OLD' },
  );
}

/** Masks the credentials of URLs in all text that is written to a stream from now on. */
export function maskOutput(stream: Pick<NodeJS.WriteStream, 'write'>): void {
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean;
  stream.write = (chunk: unknown, ...rest: unknown[]) =>
    write(typeof chunk === 'string' ? maskUrls(chunk) : chunk, ...rest);
}
