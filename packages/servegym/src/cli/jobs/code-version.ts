import { join } from 'node:path';
import packageJson from '../../../package.json' with { type: 'json' };
import { sourceFolder, sourceHash } from './source-hash.ts';

/** What the results of jobs depend on. */
const PACKAGES = [
  '@servegym/simulator',
  '@servegym/environments',
  '@servegym/agents',
  '@servegym/jobs',
  '@servegym/tuning',
];

/**
 * The version of everything that jobs run: that of the package, and a hash of the sources, so that two checkouts
 * between releases are told apart too.
 */
export function codeVersion(): string {
  const folders = [join(import.meta.dirname, '../..'), ...PACKAGES.map(sourceFolder)];
  return `${packageJson.version}-${sourceHash(folders).slice(0, 8)}`;
}
