import { decodeServeActor, type ServeActor } from '@servegym/agents';
import { InputError } from './input-error.ts';
import { readInputBytes } from './read-input-file.ts';

/** Weights that `servegym train` wrote. @throws InputError when the file has none for this version of the environment. */
export async function readServeActor(path: string): Promise<ServeActor> {
  const bytes = await readInputBytes(path);
  try {
    return decodeServeActor(bytes);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.name !== 'TensorFileError' && error.name !== 'ServeActorError') throw error;
    throw new InputError(`${path}: ${error.message}`);
  }
}
