import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import packageJson from '../../package.json' with { type: 'json' };

/** What the results of jobs depend on. */
const PACKAGES = ['@servegym/simulator', '@servegym/environments', '@servegym/agents'];

/**
 * The version of everything that jobs run: that of the package, and a hash of the sources, so that two checkouts
 * between releases are told apart too.
 */
export function codeVersion(): string {
  const hash = createHash('sha256');
  const folders = [
    dirname(import.meta.dirname),
    ...PACKAGES.map((name) => dirname(fileURLToPath(import.meta.resolve(name)))),
  ];
  for (const [index, folder] of folders.entries()) {
    const files = globSync('**/*.{ts,js,json,wasm}', { cwd: folder })
      .filter((path) => !/\.(test|fixture)\.ts$/.test(path))
      .map((path) => path.split(sep).join('/'))
      .sort();
    for (const file of files) {
      hash.update(`${index} ${file}\0`).update(readFileSync(join(folder, file)));
    }
  }
  return `${packageJson.version}-${hash.digest('hex').slice(0, 8)}`;
}
