import { decodeGymTable, type OwnTable } from '@servegym/agents';
import { GymWorld, type InferenceGymOptions, TraceTable, type TraceTableError } from '@servegym/environments';
import { decodeInputFile } from './read-input-file.ts';

/** Options of `inferencegym` with the table in a file, or with the one that comes with the package. @throws InputError */
export async function readGymOptions(path: string | undefined): Promise<InferenceGymOptions> {
  if (path === undefined) return {};
  const { rows, hash } = await readOwnTable(path);
  const world = new GymWorld(new TraceTable(rows));
  return { world: async () => world, tableHash: hash };
}

/** The trace table in a file. @throws InputError when it cannot be played */
export function readOwnTable(path: string): Promise<OwnTable> {
  return decodeInputFile(
    path,
    decodeGymTable,
    (error) =>
      ` (${(error as TraceTableError).code}). \`servegym table check ${path}\` lists all that is wrong with it.`,
  );
}
