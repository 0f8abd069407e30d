import { basename } from 'node:path';
import {
  agentsOf,
  decodeGymTable,
  type FoundPolicy,
  findPolicy,
  isPolicyFile,
  type OwnTable,
} from '@servegym/agents';
import {
  addServeTrace,
  ENVIRONMENTS,
  findEnvironment,
  type RegisteredEnvironment,
  WORKLOAD_IDS,
} from '@servegym/environments';
import { readTrace } from '@servegym/operators/traces';
import type { OptionTable, OptionValues } from '../command-table.ts';
import type { EvaluateOptions } from '../evaluate/command.ts';
import { InputError, invalidFile } from '../failure.ts';
import { decodeInputFile, importInputFile, readInputJson } from '../files.ts';
import { isPolicyModule } from '../policy/import-policy.ts';
import { within } from './options.ts';

/** Options that say under which traffic, and on which server, tasks are played. */
export const scenarioOptions = {
  traffic: {
    value: '<file|model>',
    help: 'requests of your own, or the model of a public trace (docs/traffic.md)',
  },
  rateScale: within('<x>', 0.01, 20, 'arrivals come this many times as fast'),
  profile: { value: '<name>', help: "the engine profile, instead of the task's own" },
  shift: {
    value: '<name>',
    help: 'change the task, such as its GPU, model or traffic',
    choices: [...new Set(Object.values(ENVIRONMENTS).flatMap(({ shifts }): readonly string[] => shifts))],
  },
} as const satisfies OptionTable;

/** True for the model of a public trace, false for a file. */
export const isTrafficModel = (traffic: string | undefined): boolean =>
  (WORKLOAD_IDS as readonly (string | undefined)[]).includes(traffic);

export type Scenario = Readonly<Record<string, unknown>>;

/**
 * The reset options that these options stand for.
 * @param taskIds the tasks that are to be played under them
 * @throws InputError, SimulatorError or EnvironmentError
 */
async function readScenario(
  entry: RegisteredEnvironment,
  { traffic, rateScale, profile, shift }: OptionValues<typeof scenarioOptions>,
  taskIds: readonly (string | number)[],
): Promise<Scenario> {
  const named = isTrafficModel(traffic) ? { traffic } : { trace: traffic };
  const given: Scenario & { readonly trace?: string } = { ...named, rate_scale: rateScale, profile, shift };
  const { shape } = entry.resetOptions();
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || Object.hasOwn(shape, name)) continue;
    const flag = name === 'trace' ? 'traffic' : name.replace('_', '-');
    throw new InputError(`--${flag} means nothing to ${entry.id}: leave it out, or choose another --env`);
  }
  const trace = given.trace === undefined ? undefined : (await loadTrace(given.trace)).name;
  const scenario = Object.fromEntries(
    Object.entries({ ...given, trace }).filter(([, value]) => value !== undefined),
  );
  for (const task_id of taskIds) entry.choose({ ...scenario, task_id });
  // The schema pins a trace by its digest.
  const pinned: Scenario = entry.resetOptions().parse(scenario);
  return Object.fromEntries(Object.keys(scenario).map((name) => [name, pinned[name]]));
}

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
  const module = await importInputFile(path);
  if (module.default !== undefined) return module.default;
  throw invalidFile(`expected the task to be the default export of ${path}, which has none`);
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

/** Options of a definition with the table in a file; none without one. @throws InputError when it cannot be played */
export async function readTable(path: string | undefined): Promise<{ readonly table?: OwnTable }> {
  return path === undefined ? {} : { table: await decodeInputFile(path, decodeGymTable) };
}

/** A policy as it was named: of the catalogue, a file, or a language model. */
export type NamedPolicy =
  | { readonly name: string; readonly found: FoundPolicy }
  /** Name of the model; empty for the one that the variables name. */
  | { readonly name: string; readonly model: string };

/** True for `llm` and `llm:MODEL`. */
export const isModel = (name: string) => /^llm(:|$)/.test(name);

/** Finds the policies that were named; those of the environment's baseline without any. @throws InputError */
export async function readPolicies({ policies, env, llm }: EvaluateOptions): Promise<NamedPolicy[]> {
  const names = policies.length > 0 ? policies : [agentsOf(env).baseline];
  const read = await Promise.all(
    names.map(async (name): Promise<NamedPolicy> => {
      if (isModel(name)) return { name, model: name.slice(4) };
      if (!isPolicyFile(name)) return { name, found: findPolicy(env, name) };
      if (isPolicyModule(name))
        throw new InputError(
          `${name}: expected a file that training wrote, got a module; \`servegym policy evaluate ${name}\` scores its functions`,
        );
      return { name, found: await decodeInputFile(name, (bytes) => findPolicy(env, bytes)) };
    }),
  );
  if (llm !== undefined && !read.some((policy) => 'model' in policy))
    throw new InputError('--llm says how a language model is asked: name the policy llm, or llm:MODEL');
  if (llm?.['decide-every'] !== undefined && llm['max-calls'] !== undefined)
    throw new InputError('decide-every and max-calls of --llm contradict each other: give one of them');
  return read;
}

/**
 * The task that was named, made known when it is in a file, and what it is played under.
 * @throws InputError, SimulatorError or EnvironmentError
 */
export async function readInputs(
  options: Pick<EvaluateOptions, 'env' | 'task' | 'table' | 'traffic' | 'rateScale' | 'profile' | 'shift'>,
) {
  const { environment: entry } = agentsOf(options.env);
  if (options.table !== undefined && !entry.takes.includes('table'))
    throw new InputError(`--table means nothing to ${entry.id}: leave it out, or choose another --env`);
  const task = await taskNamed(options.task, entry);
  const id = entry.tasks.ids().find((each) => String(each) === task);
  const scenario = await readScenario(entry, options, id === undefined ? entry.tasks.shippedIds : [id]);
  return {
    /** Id of a task, or `all`. */
    task,
    inputs: {
      ...(Object.keys(scenario).length > 0 && { scenario }),
      ...(await readTable(options.table)),
    },
  };
}
