import { GymWorld, shippedWorld, TraceTable, TraceTableError } from '@servegym/environments';
import { InputError } from './input-error.ts';
import { readInputBytes } from './read-input-file.ts';

/** The trace table in a file, or the one that comes with the package. @throws InputError when it cannot be played */
export async function readWorld(path: string | undefined): Promise<GymWorld> {
  if (path === undefined) return shippedWorld();
  return new GymWorld(await readTable(path));
}

/** @throws InputError */
export async function readTable(path: string): Promise<TraceTable> {
  const bytes = await readInputBytes(path);
  try {
    return await TraceTable.read(bytes);
  } catch (error) {
    if (!(error instanceof TraceTableError)) throw error;
    throw new InputError(
      `${path}: ${error.message} (${error.code}). \`servegym table check ${path}\` lists all that is wrong with it.`,
    );
  }
}
