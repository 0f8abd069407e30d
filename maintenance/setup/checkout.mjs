import { existsSync } from 'node:fs';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the checkout. */
export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The oldest Node that runs TypeScript directly. */
const OLDEST_NODE = [22, 18];

const installedNode = join(root, 'node_modules', 'node', 'bin', 'node');

/**
 * The Node that runs the project: the one that npm installed here, or the running one when it is new enough.
 * Throws when neither is there.
 */
export function projectNode() {
  if (existsSync(installedNode)) return installedNode;
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]))
    return process.execPath;
  throw new Error(
    `ServeGym runs on Node ${OLDEST_NODE.join('.')} or newer, and this is ${process.versions.node}. npm installs a ` +
      'newer one beside it unless install scripts are off: run `npm ci --ignore-scripts=false`, or update Node.',
  );
}

/**
 * The environment for npm itself. npm runs on the system's Node, because `npm ci` deletes the one in `node_modules`
 * while it works.
 */
export function npmEnvironment() {
  const inside = join(root, 'node_modules') + sep;
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((entry) => !resolve(entry).startsWith(inside));
  return { ...process.env, PATH: path.join(delimiter) };
}

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
