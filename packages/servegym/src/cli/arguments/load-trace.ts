import { basename } from 'node:path';
import { addServeTrace } from '@servegym/environments';
import { InputError } from '../input-error.ts';
import { readTrace } from './read-trace.ts';

/** A trace that can be played by its name. */
export interface LoadedTrace {
  /** The file's name without its ending. */
  readonly name: string;
  readonly file: string;
  readonly requests: number;
}

/**
 * Reads a trace and makes it known under the name of its file, without the ending.
 * @throws InputError or TraceError when it cannot be read
 */
export async function loadTrace(file: string): Promise<LoadedTrace> {
  const { trace } = await readTrace(file);
  const name = basename(file)
    .replace(/\.(gz|gzip|zst|zstd)$/i, '')
    .replace(/\.[^.]+$/, '');
  try {
    addServeTrace(name, trace);
  } catch (error) {
    throw new InputError(`${file}: ${(error as Error).message}. Rename the file.`);
  }
  return { name, file, requests: trace.arrivalMs.length };
}
