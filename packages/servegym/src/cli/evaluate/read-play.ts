import { agentsOf, type FoundPolicy, findPolicy, isPolicyFile, type PlayInputs } from '@servegym/agents';
import { decodeInputFile } from '../arguments/input-files.ts';
import { readOwnTable, readScenario, taskNamed } from '../arguments/scenario-options.ts';
import { InputError } from '../failure.ts';
import type { EvaluateOptions } from './command.ts';

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
      return { name, found: await decodeInputFile(name, (bytes) => findPolicy(env, bytes)) };
    }),
  );
  if (llm !== undefined && !read.some((policy) => 'model' in policy))
    throw new InputError('--llm says how a language model is asked: name the policy llm, or llm:MODEL');
  if (llm?.['decide-every'] !== undefined && llm['max-calls'] !== undefined)
    throw new InputError('decide-every and max-calls of --llm contradict each other: give one of them');
  return read;
}

/** What policies play. */
export interface PlayedInputs {
  /** Id of a task, or `all`. */
  readonly task: string;
  readonly inputs: PlayInputs;
}

/**
 * The task that was named, made known when it is in a file, and what it is played under.
 * @throws InputError, SimulatorError or EnvironmentError
 */
export async function readInputs(
  options: Pick<EvaluateOptions, 'env' | 'task' | 'table' | 'traffic' | 'rateScale' | 'profile' | 'shift'>,
): Promise<PlayedInputs> {
  const { environment: entry } = agentsOf(options.env);
  if (options.table !== undefined && !entry.takes.includes('table'))
    throw new InputError(`--table means nothing to ${entry.id}: leave it out, or choose another --env`);
  const task = await taskNamed(options.task, entry);
  const id = entry.tasks.ids().find((each) => String(each) === task);
  const scenario = await readScenario(entry, options, id === undefined ? entry.tasks.shippedIds : [id]);
  return {
    task,
    inputs: {
      ...(Object.keys(scenario).length > 0 && { scenario }),
      ...(options.table !== undefined && { table: await readOwnTable(options.table) }),
    },
  };
}
