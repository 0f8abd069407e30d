import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the checkout. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/**
 * The environment for the project's programs: its own Node and tools come first, and Node keeps the TypeScript that it
 * has compiled, which halves the time a server takes to start.
 */
export function projectEnvironment(extra = {}) {
  const bin = join(root, 'node_modules', '.bin');
  return {
    NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node'),
    ...process.env,
    PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`,
    ...extra,
  };
}
