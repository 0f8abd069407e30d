// `npm run release:version`: gives all packages the next version, by the changesets in `.changeset`, and moves their lines to
// CHANGELOG.md.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const UNRELEASED = '## [Unreleased]\n';

const root = dirname(import.meta.dirname);
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });

if (import.meta.main) {
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
}

/**
 * The text of CHANGELOG.md with a section for a new version, which holds the texts of the changesets and all that
 * stood under "Unreleased". Throws when there is nothing to release.
 *
 * @param date as `2026-11-22`
 * @param changes each a list, or the text of one item
 */
export function releasedChangelog(
  text: string,
  version: string,
  date: string,
  changes: readonly string[],
): string {
  const [before, after, ...more] = text.split(UNRELEASED) as [string, string?, ...string[]];
  if (after === undefined || more.length > 0)
    throw new Error(
      `Expected one line \`${UNRELEASED.trim()}\` in CHANGELOG.md, got ${more.length === 0 ? 0 : more.length + 1}`,
    );
  if (text.includes(`## [${version}]`)) throw new Error(`CHANGELOG.md has a section for ${version} already`);
  const items = changes.map((change) =>
    change.startsWith('- ') ? `${change.trim()}\n` : `- ${change.trim().replaceAll('\n', '\n  ')}\n`,
  );
  const lines = items.join('');
  return `${before}${UNRELEASED}\n## [${version}] - ${date}\n${lines && `\n${lines}`}${after}`;
}

/** The text of a changeset, behind the packages and sizes of its front matter. */
export function changesetText(source: string): string {
  const text = /^---\n.*?\n---\n(.*)$/s.exec(source)?.[1]?.trim();
  if (text === undefined)
    throw new Error('Expected a changeset to begin with its packages between two lines `---`');
  return text;
}
