import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EnvironmentDefinition } from '@servegym/openenv';
import { InputError } from '../cli/input-error.ts';

/**
 * Loads an environment of one's own from a module that exports one definition, as `defineEnvironment` makes them.
 *
 * @param known the environments that need no module, for the message
 * @throws InputError when the module cannot be loaded, or exports none or several.
 */
export async function loadEnvironment(
  path: string,
  known: readonly string[],
): Promise<EnvironmentDefinition<unknown, object, object>> {
  if (!existsSync(path)) {
    throw new InputError(
      `Expected the environment to be one of ${known.join(', ')}, or a module that exports one; there is no file \`${path}\`.`,
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

function isDefinition(value: unknown): value is EnvironmentDefinition<unknown, object, object> {
  if (typeof value !== 'object' || value === null) return false;
  const { id, version, create, action } = value as Partial<EnvironmentDefinition>;
  return (
    typeof id === 'string' &&
    typeof version === 'string' &&
    typeof create === 'function' &&
    action !== undefined
  );
}
