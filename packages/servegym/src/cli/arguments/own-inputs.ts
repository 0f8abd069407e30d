import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { addServeTrace, type FleetTask, fleet, llmserve, type ServeTask } from '@servegym/environments';
import { readTrace } from '@servegym/operators/traces';
import { InputError } from '../input-error.ts';
import { readInputFile, readInputJson } from './read-input-file.ts';

/**
 * Loads a task of one's own, from JSON or from a module whose default export it is, and makes it known under its id.
 * @throws InputError when the file cannot be read, EnvironmentError when what it holds is no task
 */
export async function loadTask(path: string): Promise<ServeTask> {
  return addTask(await content(path), path);
}

/**
 * Loads a task of one's own of any environment, and makes it known under its id. One with `streams` is of `fleet`.
 * @throws InputError when the file cannot be read or its id is taken, EnvironmentError when what it holds is no task
 */
export async function loadAnyTask(path: string): Promise<ServeTask | FleetTask> {
  const candidate = await content(path);
  const isFleet = typeof candidate === 'object' && candidate !== null && 'streams' in candidate;
  return isFleet ? addFleetTask(candidate, path) : addTask(candidate, path);
}

/** Loads a task of `fleet`, and makes it known under its id. @throws as `loadAnyTask` */
export async function loadFleetTask(path: string): Promise<FleetTask> {
  return addFleetTask(await content(path), path);
}

function addFleetTask(candidate: unknown, source: string): FleetTask {
  return known(fleet.tasks.parse(candidate, source), source, (task) => fleet.tasks.add(task));
}

/**
 * Makes a task of one's own known under its id.
 * @param source where it comes from, for messages
 * @throws InputError for an id that is taken, EnvironmentError when the candidate is no task
 */
export function addTask(candidate: unknown, source: string): ServeTask {
  return known(llmserve.tasks.parse(candidate, source), source, (task) => llmserve.tasks.add(task));
}

function known<Task>(task: Task, source: string, add: (task: Task) => void): Task {
  try {
    add(task);
  } catch (error) {
    throw new InputError(`${source}: ${(error as Error).message}`);
  }
  return task;
}

/**
 * The task of this id, or the one in this file when it looks like a path.
 * @throws InputError when there is none
 */
export async function findOrLoadTask(idOrFile: string): Promise<ServeTask> {
  const known = llmserve.tasks.find(idOrFile);
  if (known !== undefined) return known;
  if (looksLikePath(idOrFile)) return loadTask(idOrFile);
  throw new InputError(
    `expected a task, one of ${llmserve.tasks.ids().join(', ')}, or a file that holds one, got ${idOrFile}`,
  );
}

/**
 * The task of `fleet` of this id, or the one in this file when it looks like a path.
 * @throws InputError when there is none
 */
export async function findOrLoadFleetTask(idOrFile: string): Promise<FleetTask> {
  const known = fleet.tasks.find(idOrFile);
  if (known !== undefined) return known;
  if (looksLikePath(idOrFile)) return loadFleetTask(idOrFile);
  throw new InputError(
    `expected a task, one of ${fleet.tasks.ids().join(', ')}, or a file that holds one, got ${idOrFile}`,
  );
}

function looksLikePath(text: string): boolean {
  return /[./\\]/.test(text);
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
