import { createWriteStream, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { access, constants, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import {
  findGpu,
  findModel,
  findProfile,
  modelFromConfig,
  parseEngineProfile,
  parseGpu,
} from '@servegym/profiles';
import { InputError, InterruptedError, invalidFile, isInputError, onInterrupt } from './failure.ts';

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such folder',
  ENOTDIR: 'there is no such folder',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
};

/** Text of a file that somebody named on the command line. @throws InputError when it cannot be read. */
export const readInputFile = async (path: string) => (await readInputBytes(path)).toString('utf8');

/** Bytes of a file that somebody named on the command line. @throws InputError when it cannot be read. */
async function readInputBytes(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    const reason = code === 'ENOENT' ? 'there is no such file' : (REASONS[code] ?? code);
    throw new InputError(`cannot read ${path}: ${reason}`, { code: 'FILE_UNREADABLE' });
  }
}

/** Value of a JSON file that somebody named on the command line. @throws InputError when it is none. */
export async function readInputJson(path: string): Promise<unknown> {
  return parseInputJson(await readInputFile(path), path);
}

/** Value of a JSON text. @throws InputError when it is none. */
export function parseInputJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidFile(`${path} is no JSON: ${(error as Error).message}`);
  }
}

/** A module that somebody named on the command line; it runs in this process. @throws InputError when it cannot be loaded. */
export async function importInputFile(path: string): Promise<Readonly<Record<string, unknown>>> {
  await readInputBytes(path);
  try {
    return await import(pathToFileURL(resolve(path)).href);
  } catch (error) {
    throw invalidFile(`${path} could not be loaded: ${(error as Error).message}`, error);
  }
}

/**
 * Content of a file that somebody named on the command line. An input error of `decode` gets the path before it.
 * @throws InputError
 */
export async function decodeInputFile<Content>(
  path: string,
  decode: (bytes: Buffer) => Content | Promise<Content>,
): Promise<Content> {
  const bytes = await readInputBytes(path);
  try {
    return await decode(bytes);
  } catch (error) {
    if (!isInputError(error)) throw error;
    throw new InputError(`${path}: ${error.message}`, { cause: error });
  }
}

/** Reads what has a name, or is in a file where that ends in `.json`. */
const named =
  <Found>(find: (name: string) => Found, parse: (text: string, file: string) => Found) =>
  async (nameOrFile: string): Promise<Found> =>
    nameOrFile.endsWith('.json') ? parse(await readInputFile(nameOrFile), nameOrFile) : find(nameOrFile);

export const readProfile = named(findProfile, parseEngineProfile);
export const readGpu = named(findGpu, parseGpu);
/** Of a `config.json` of Hugging Face; its folder, or else the file, names the model. */
export const readModel = named(findModel, (text, path) => {
  const [file, folder] = [basename(path, '.json'), basename(dirname(path))];
  return modelFromConfig(text, file === 'config' && /\w/.test(folder) ? folder : file, path);
});

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

/** Writes a file of the command's own as a whole: a crash leaves the one that was there. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  writeFileSync(`${path}.part`, content);
  renameSync(`${path}.part`, path);
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
