// `npm run release:version`: gives all packages the next version, by the changesets in `.changeset`, and moves their lines to
// CHANGELOG.md.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { changesetText, releasedChangelog } from './changelog.ts';

const root = dirname(dirname(import.meta.dirname));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });

const changes = globSync('.changeset/*.md', { cwd: root })
  .sort()
  .map((path) => changesetText(read(path)))
  .filter((text) => text !== '');
if (changes.length === 0)
  throw new Error('There is nothing to release. Write what has changed with `npm run changeset`.');

run('npm', 'run', '--silent', 'changeset', '--', 'version');
const { version } = JSON.parse(read('packages/servegym/package.json')) as { version: string };
for (const [path, line] of [
  ['clients/python/pyproject.toml', /^version = ".*"$/m],
  ['clients/python/src/servegym/__init__.py', /^__version__ = ".*"$/m],
] as const) {
  const text = read(path);
  if (!line.test(text)) throw new Error(`Expected a line like ${line} in ${path}`);
  writeFileSync(
    join(root, path),
    text.replace(line, (found) => found.replace(/".*"/, `"${version}"`)),
  );
}
run('npm', 'install', '--package-lock-only', '--ignore-scripts', '--silent');
const today = new Date().toISOString().slice(0, 10);
writeFileSync(join(root, 'CHANGELOG.md'), releasedChangelog(read('CHANGELOG.md'), version, today, changes));
console.log(`Version ${version}. Commit it, and tag the commit v${version} once it is on main.`);
