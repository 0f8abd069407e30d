import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type DefinitionOptions,
  ENVIRONMENT_IDS,
  findEnvironment,
  type RegisteredEnvironment,
} from '@servegym/environments';
import type { EnvironmentDefinition } from '@servegym/openenv';
import { readTable } from '../cli/arguments/scenario-options.ts';
import { InputError } from '../cli/failure.ts';
import { type PolicyCatalogue, policiesOf, schemaPolicies } from './policy-catalogue.ts';

/** An environment with the policies that play it. */
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
  {
    tableFile,
    ...given
  }: Omit<DefinitionOptions, 'table'> & { readonly tableFile?: string | undefined } = {},
): Promise<OpenedEnvironment> {
  const entry = findEnvironment(name);
  if (entry === undefined) {
    const definition = await loadEnvironment(name);
    return { definition, policies: schemaPolicies(definition), inputs: {} };
  }
  const inputs = { ...given, ...(entry.takes.includes('table') && (await readTable(tableFile))) };
  const definition = entry.definition(inputs);
  return { definition, policies: policiesOf(entry, definition), entry, inputs };
}

async function loadEnvironment(path: string): Promise<OpenedEnvironment['definition']> {
  if (!existsSync(path)) {
    throw new InputError(
      `Expected the environment to be one of ${ENVIRONMENT_IDS.join(', ')}, or a module that exports one; there is no file \`${path}\`.`,
    );
  }
  const definitions = Object.values(await load(path)).filter(isDefinition);
  if (definitions.length === 1) return definitions[0];
  throw new InputError(
    `Expected \`${path}\` to export one environment, made with \`defineEnvironment\`; it exports ${definitions.length}.`,
    { code: 'INVALID_FILE' },
  );
}

async function load(path: string): Promise<object> {
  try {
    return await import(pathToFileURL(resolve(path)).href);
  } catch (error) {
    throw new InputError(`The environment \`${path}\` could not be loaded: ${(error as Error).message}.`, {
      code: 'INVALID_FILE',
      cause: error,
    });
  }
}

function isDefinition(value: unknown): value is EnvironmentDefinition {
  if (typeof value !== 'object' || value === null) return false;
  const { id, version, create, action } = value as Partial<EnvironmentDefinition>;
  return (
    typeof id === 'string' &&
    typeof version === 'string' &&
    typeof create === 'function' &&
    action !== undefined
  );
}
