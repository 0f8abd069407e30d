import { createWriteStream, openSync, rmSync } from 'node:fs';
import { access, constants, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { InputError, InterruptedError, onInterrupt } from '../failure.ts';

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such folder',
  ENOTDIR: 'there is no such folder',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
};

/**
 * Writes pieces of text, or of bytes, to a file that somebody named on the command line: all of it or nothing. What was
 * there before stays until then, also when Ctrl-C or SIGTERM ends the command. A device or a pipe is written to as it is.
 * @throws InputError when it cannot.
 */
export async function writeOutputFile(path: string, pieces: Iterable<string | Uint8Array>): Promise<void> {
  const direct = await isSpecial(path);
  const part = direct ? path : `${path}.part`;
  const unlisten = onInterrupt((signal) => {
    if (!direct) rmSync(part, { force: true });
    process.exit(new InterruptedError(signal).exitCode);
  });
  try {
    // Opened at once: a file that is opened while an interrupt removes it would stay.
    const options = direct ? {} : { fd: openSync(part, 'w') };
    await pipeline(Readable.from(pieces), createWriteStream(part, options));
    if (!direct) await rename(part, path);
  } catch (error) {
    if (!direct) await rm(part, { force: true }).catch(() => undefined);
    throw failure(path, error);
  } finally {
    unlisten();
  }
}

/** Writes a value as JSON, as `writeOutputFile` does. @throws InputError when it cannot. */
export function writeJsonFile(path: string, value: unknown): Promise<void> {
  return writeOutputFile(path, [`${JSON.stringify(value, null, 2)}\n`]);
}

/** Says that a file cannot be written before the work begins whose outcome it is to hold. @throws InputError */
export async function requireWritable(path: string | undefined): Promise<void> {
  if (path === undefined || (await isSpecial(path))) return;
  try {
    const folder = dirname(path);
    if (!(await stat(folder)).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' });
    await access(folder, constants.W_OK);
    const there = await stat(path).catch(() => undefined);
    if (there?.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
  } catch (error) {
    throw failure(path, error);
  }
}

/** True for a device or a pipe: neither a file nor a folder. */
async function isSpecial(path: string): Promise<boolean> {
  const there = await stat(path).catch(() => undefined);
  return there !== undefined && !there.isFile() && !there.isDirectory();
}

function failure(path: string, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  // An error from making the pieces is not the file's fault.
  if (code === undefined) return error as Error;
  return new InputError(`cannot write ${path}: ${REASONS[code] ?? code}`, { code: 'FILE_UNWRITABLE' });
}
