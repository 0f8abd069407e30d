import { InputError } from './input-error.ts';

/** The oldest Node that has all that the commands use: `engines` of the package. */
export const OLDEST_NODE = '22.18';

/** @throws InputError `NODE_TOO_OLD` before a command fails on something that this Node lacks */
export function requireNode(version = process.versions.node): void {
  if (version.localeCompare(OLDEST_NODE, 'en', { numeric: true }) >= 0) return;
  throw new InputError(
    `expected Node ${OLDEST_NODE} or newer, got ${version}: install a newer one, for example with \`nvm install 24\``,
    { code: 'NODE_TOO_OLD' },
  );
}
