import { type EngineProfile, findProfile, parseEngineProfile } from '@servegym/simulator';
import { readInputFile } from './read-input-file.ts';

/** The profile of this name, or the one in this file when it ends in `.json`. */
export async function readProfile(nameOrFile: string): Promise<EngineProfile> {
  if (!nameOrFile.endsWith('.json')) return findProfile(nameOrFile);
  return parseEngineProfile(await readInputFile(nameOrFile), nameOrFile);
}
