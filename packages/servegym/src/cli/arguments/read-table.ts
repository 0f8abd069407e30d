import { decodeGymTable, type OwnTable } from '@servegym/agents';
import type { EnvironmentError } from '@servegym/openenv';
import { decodeInputFile } from './read-input-file.ts';

/** Options of a definition with the table in a file; none without one. @throws InputError */
export async function readTable(path: string | undefined): Promise<{ readonly table?: OwnTable }> {
  return path === undefined ? {} : { table: await readOwnTable(path) };
}

/** The trace table in a file. @throws InputError when it cannot be played */
export function readOwnTable(path: string): Promise<OwnTable> {
  return decodeInputFile(
    path,
    decodeGymTable,
    (error) =>
      ` (${(error as EnvironmentError).code}). \`servegym profile table check ${path}\` lists all that is wrong with it.`,
  );
}
