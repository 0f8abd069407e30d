import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import {
  findGpu,
  findModel,
  findProfile,
  type Gpu,
  modelFromConfig,
  parseEngineProfile,
  parseGpu,
  type ServedModel,
} from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import { InputError, isInputError } from '../failure.ts';

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
};

/** Text of a file that somebody named on the command line. @throws InputError when it cannot be read. */
export async function readInputFile(path: string): Promise<string> {
  return (await readInputBytes(path)).toString('utf8');
}

/** Bytes of a file that somebody named on the command line. @throws InputError when it cannot be read. */
export async function readInputBytes(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    throw new InputError(`cannot read ${path}: ${REASONS[code] ?? code}`, { code: 'FILE_UNREADABLE' });
  }
}

/** Value of a JSON file that somebody named on the command line. @throws InputError when it is none. */
export async function readInputJson(path: string): Promise<unknown> {
  const text = await readInputFile(path);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputError(`${path} is no JSON: ${(error as Error).message}`, { code: 'INVALID_FILE' });
  }
}

/**
 * Content of a file that somebody named on the command line. An input error of `decode` gets the path before it.
 * @param advice added to such an error
 * @throws InputError
 */
export async function decodeInputFile<Content>(
  path: string,
  decode: (bytes: Buffer) => Content | Promise<Content>,
  advice = (_: Error) => '',
): Promise<Content> {
  const bytes = await readInputBytes(path);
  try {
    return await decode(bytes);
  } catch (error) {
    if (!isInputError(error)) throw error;
    throw new InputError(`${path}: ${error.message}${advice(error)}`, { cause: error });
  }
}

/** The profile of this name, or the one in this file when it ends in `.json`. */
export async function readProfile(nameOrFile: string): Promise<EngineProfile> {
  if (!nameOrFile.endsWith('.json')) return findProfile(nameOrFile);
  return parseEngineProfile(await readInputFile(nameOrFile), nameOrFile);
}

/** The GPU of this name, or the one described in this file when it ends in `.json`. */
export async function readGpu(nameOrFile: string): Promise<Gpu> {
  if (!nameOrFile.endsWith('.json')) return findGpu(nameOrFile);
  return parseGpu(await readInputFile(nameOrFile), nameOrFile);
}

/**
 * The model of this name, or that of this `config.json` of Hugging Face when it ends in `.json`. The folder of a
 * `config.json`, or else the file, names the model.
 */
export async function readModel(nameOrFile: string): Promise<ServedModel> {
  if (!nameOrFile.endsWith('.json')) return findModel(nameOrFile);
  const file = basename(nameOrFile, '.json');
  const folder = basename(dirname(nameOrFile));
  const name = file === 'config' && /\w/.test(folder) ? folder : file;
  return modelFromConfig(await readInputFile(nameOrFile), name, nameOrFile);
}
