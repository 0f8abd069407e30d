import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import packageJson from '../../../package.json' with { type: 'json' };

/** Packages beside this one on which the results of jobs depend. */
const PACKAGES = [
  '@servegym/simulator',
  '@servegym/profiles',
  '@servegym/environments',
  '@servegym/agents',
  '@servegym/jobs',
  '@servegym/operators',
];

/**
 * The version of everything that jobs run: that of the package, and a hash of the sources, so that two checkouts
 * between releases differ too.
 */
export function codeVersion(): string {
  const folders = [join(import.meta.dirname, '../..'), ...PACKAGES.map(sourceFolder)];
  return `${packageJson.version}-${sourceHash(folders).slice(0, 8)}`;
}

/** Folder of the sources of a package. */
export function sourceFolder(packageName: string): string {
  return dirname(fileURLToPath(import.meta.resolve(packageName)));
}

/** A hash, in hexadecimal, of all sources under the folders, tests not included. */
export function sourceHash(folders: readonly string[]): string {
  const hash = createHash('sha256');
  for (const [index, folder] of folders.entries()) {
    const files = globSync('**/*.{ts,js,json,wasm}', { cwd: folder })
      .filter((path) => !/\.(test|fixture)\.ts$/.test(path))
      .map((path) => path.split(sep).join('/'))
      .sort();
    for (const file of files) {
      hash.update(`${index} ${file}\0`).update(readFileSync(join(folder, file)));
    }
  }
  return hash.digest('hex');
}
