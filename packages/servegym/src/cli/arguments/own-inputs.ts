import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { decodeGymTable, type OwnTable } from '@servegym/agents';
import {
  addServeTrace,
  ENVIRONMENTS,
  findEnvironment,
  type RegisteredEnvironment,
} from '@servegym/environments';
import type { EnvironmentError } from '@servegym/openenv';
import { readTrace } from '@servegym/operators/traces';
import { InputError } from '../failure.ts';
import { decodeInputFile, readInputFile, readInputJson } from './input-files.ts';

type TaskId = string | number;

/**
 * Loads a task of your own, from JSON or from a module whose default export it is, and makes it known under its id.
 * @param entry its environment; without one, the one whose tasks look like it
 * @throws InputError when the file cannot be read or the id is taken, EnvironmentError when what it holds is no task
 */
export async function loadTask(path: string, entry?: RegisteredEnvironment): Promise<TaskId> {
  const candidate = await content(path);
  const { tasks } =
    entry ??
    Object.keys(ENVIRONMENTS)
      .map((id) => findEnvironment(id)!)
      .find((each) => each.tasks.recognises(candidate)) ??
    findEnvironment('llmserve')!;
  const task = tasks.parse(candidate, path);
  try {
    tasks.add(task);
  } catch (error) {
    throw new InputError(`${path}: ${(error as Error).message}`);
  }
  return task.id;
}

/**
 * The tasks that `--task` names: `all`, one by its id, or the one in a file, which becomes known under its id.
 * @throws InputError for a file where the environment takes none, or one that cannot be read, or EnvironmentError
 */
export async function taskNamed(idOrFile: string, entry: RegisteredEnvironment): Promise<string> {
  const isKnown = entry.tasks.ids().some((id) => String(id) === idOrFile);
  if (isKnown || !/[./\\]/.test(idOrFile)) return idOrFile;
  if (entry.takes.includes('task')) return String(await loadTask(idOrFile, entry));
  throw new InputError(
    `expected --task to be one of ${entry.tasks.ids().join(', ')}, because ${entry.id} takes no tasks of your own, got ${idOrFile}`,
  );
}

async function content(path: string): Promise<unknown> {
  if (/\.json$/i.test(path)) return readInputJson(path);
  await readInputFile(path);
  let module: { readonly default?: unknown };
  try {
    module = await import(pathToFileURL(resolve(path)).href);
  } catch (error) {
    throw new InputError(`${path} could not be loaded: ${(error as Error).message}`, {
      code: 'INVALID_FILE',
    });
  }
  if (module.default !== undefined) return module.default;
  throw new InputError(`expected the task to be the default export of ${path}, which has none`, {
    code: 'INVALID_FILE',
  });
}

/**
 * Reads a trace and makes it known under the name of its file, without the ending.
 * @throws InputError or SimulatorError when it cannot be read
 */
export async function loadTrace(file: string): Promise<{ readonly name: string; readonly requests: number }> {
  const { trace } = await readTrace(file);
  const name = basename(file)
    .replace(/\.(gz|gzip|zst|zstd)$/i, '')
    .replace(/\.[^.]+$/, '');
  try {
    addServeTrace(name, trace);
  } catch (error) {
    throw new InputError(`${file}: ${(error as Error).message}. Rename the file.`);
  }
  return { name, requests: trace.arrivalMs.length };
}

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
