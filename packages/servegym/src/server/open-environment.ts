import { existsSync } from 'node:fs';
import {
  type AsyncPolicy,
  agentsOf,
  hasLlmSettings,
  LlmClient,
  LlmPolicy,
  llmSettings,
  type PolicyDescription,
  type PolicyStep,
} from '@servegym/agents';
import {
  type DefinitionOptions,
  ENVIRONMENT_IDS,
  type EnvironmentId,
  findEnvironment,
  type RegisteredEnvironment,
} from '@servegym/environments';
import {
  type Caller,
  type EnvironmentDefinition,
  EnvironmentError,
  httpProblem,
  type ResetOptions,
  sampleValue,
  toJsonSchema,
} from '@servegym/openenv';
import { RandomStream } from '@servegym/simulator';
import { readTable } from '../cli/arguments/scenario-options.ts';
import { InputError, invalidFile } from '../cli/failure.ts';
import { importInputFile } from '../cli/files.ts';
import type { OutsideCalls } from './outside-calls.ts';

export interface OpenedEnvironment {
  readonly definition: EnvironmentDefinition;
  readonly policies: PolicyCatalogue;
  /** Absent for a module. */
  readonly entry?: RegisteredEnvironment;
  readonly inputs: DefinitionOptions;
}

/**
 * Opens an environment of the registry by its name, or one of one's own from a module that exports one definition, as
 * `defineEnvironment` makes them.
 * @param name its id, or the path of the module
 * @throws InputError when the table or the module cannot be loaded, or the module exports none or several.
 */
export async function openEnvironment(
  name: string,
  options: Omit<DefinitionOptions, 'table'> & {
    readonly tableFile?: string | undefined;
    /** Counts the questions to a language model. Without it, none is among the policies. */
    readonly outside?: OutsideCalls;
  } = {},
): Promise<OpenedEnvironment> {
  const { tableFile, outside, ...given } = options;
  const entry = findEnvironment(name);
  if (entry === undefined) {
    const definition = await loadEnvironment(name);
    return { definition, policies: schemaPolicies(definition), inputs: {} };
  }
  const inputs = { ...given, ...(entry.takes.includes('table') && (await readTable(tableFile))) };
  const definition = entry.definition(inputs);
  return { definition, policies: policiesOf(entry, definition, outside), entry, inputs };
}

async function loadEnvironment(path: string): Promise<OpenedEnvironment['definition']> {
  if (!existsSync(path))
    throw new InputError(
      `Expected the environment to be one of ${ENVIRONMENT_IDS.join(', ')}, or a module that exports one; there is no file \`${path}\`.`,
    );
  const definitions = Object.values(await importInputFile(path)).filter(isDefinition);
  if (definitions.length === 1) return definitions[0];
  throw invalidFile(
    `Expected \`${path}\` to export one environment, made with \`defineEnvironment\`; it exports ${definitions.length}.`,
  );
}

function isDefinition(value: unknown): value is EnvironmentDefinition {
  if (typeof value !== 'object' || value === null) return false;
  const { id, version, create, action } = value as Partial<EnvironmentDefinition>;
  const isNamed = typeof id === 'string' && typeof version === 'string';
  return isNamed && typeof create === 'function' && action !== undefined;
}

/** A policy that plays sessions; one on worker threads asks whose they are. */
export interface ServedPolicy extends AsyncPolicy<unknown, unknown> {
  act(step: PolicyStep<unknown, unknown>, caller?: Caller): unknown;
}

/** The policies that can play the sessions of an environment. */
export interface PolicyCatalogue {
  list(): readonly PolicyDescription[];
  /** A fresh policy of one of the listed names. */
  create(name: string): ServedPolicy;
  /** Names of those that plan for longer than a caller waits. */
  readonly planners?: readonly string[];
  /** The action in force right after a reset. */
  initialAction(reset: ResetOptions): unknown;
}

/** Name of the policy that asks a language model, for as long as the variables name one. */
export const LLM = 'llm';

/** The policies of an environment; those of its schemas where it comes with none. */
export function policiesOf(
  entry: Pick<RegisteredEnvironment, 'id' | 'initialAction' | 'definition' | 'grade'>,
  definition: EnvironmentDefinition = entry.definition(),
  outside?: OutsideCalls,
): PolicyCatalogue {
  // Nobody is to get better at what is not graded.
  if (entry.grade === undefined) return schemaPolicies(definition);
  const { policies, planners, createPolicy } = agentsOf(entry.id as EnvironmentId);
  // A policy of an environment meets only this environment's observations.
  const create = createPolicy as unknown as PolicyCatalogue['create'];
  return {
    planners,
    initialAction: entry.initialAction,
    list() {
      if (!outside || !hasLlmSettings(process.env)) return policies;
      const title = `Language model (${llmSettings(process.env).model})`;
      const description = 'Asks a language model before every window, and sets its answer.';
      return [...policies, { name: LLM, title, description }];
    },
    create(name) {
      if (name !== LLM || !outside || !hasLlmSettings(process.env)) return create(name);
      let client = '';
      const model = outside.answererOf(new LlmClient(llmSettings(process.env)), () => client);
      const policy = new LlmPolicy(entry.definition(), model);
      return {
        name,
        reset: (episode) => policy.reset(episode),
        watch: policy.watch.bind(policy) as ServedPolicy['watch'],
        act(step, caller) {
          client = caller?.name ?? '';
          return policy.act(step as never);
        },
      };
    },
  };
}

/** Policies for an environment of which only the schemas are known: actions drawn from its schema. */
export function schemaPolicies(definition: Pick<EnvironmentDefinition, 'action'>): PolicyCatalogue {
  const schema = toJsonSchema(definition.action, 'input');
  const random: PolicyDescription = {
    name: 'random',
    title: 'Random',
    description: 'Draws every field of the action from its range, anew for every step.',
  };
  return {
    list: () => [random],
    create() {
      let stream = new RandomStream(0, 'random policy');
      return {
        name: random.name,
        reset({ seed }) {
          stream = new RandomStream(seed, 'random policy');
        },
        act: () => definition.action.parse(sampleValue(schema as never, () => stream.uniform())),
      };
    },
    initialAction: () => definition.action.parse(sampleValue(schema as never)),
  };
}

/** Does work that may ask a model; what is wrong with it becomes an answer of the server. */
export async function asAnswers<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EnvironmentError && error.code.startsWith('LLM_'))) throw error;
    throw httpProblem(error.code === 'LLM_SETTINGS' ? 501 : 502, `${error.message}.`, error.code);
  }
}
