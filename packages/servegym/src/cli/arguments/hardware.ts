import { basename, dirname } from 'node:path';
import {
  findGpu,
  findModel,
  type Gpu,
  modelFromConfig,
  parseGpu,
  type ServedModel,
} from '@servegym/profiles';
import { readInputFile } from './read-input-file.ts';

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
