import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { InputError } from './input-error.ts';

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such folder',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  ENOSPC: 'the disk is full',
};

/** Writes pieces of text, or of bytes, to a file that somebody named on the command line. @throws InputError when it cannot. */
export async function writeOutputFile(path: string, pieces: Iterable<string | Uint8Array>): Promise<void> {
  try {
    await pipeline(Readable.from(pieces), createWriteStream(path));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    throw new InputError(`cannot write ${path}: ${REASONS[code] ?? code}`);
  }
}
