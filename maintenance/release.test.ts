import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { changesetText, releasedChangelog } from './release.ts';

const root = dirname(import.meta.dirname);
const folder = mkdtempSync(join(tmpdir(), 'servegym-version-'));
after(() => rmSync(folder, { recursive: true }));

/** Files that a release reads or writes. */
const PATHS = [
  ...['package.json', 'package-lock.json', '.npmrc', '.changeset/config.json', 'packages/*/package.json'],
  ...['CHANGELOG.md', 'clients/python/pyproject.toml', 'clients/python/src/servegym/__init__.py'],
  'maintenance/release.ts',
];

describe('the changelog of a release', () => {
  it('data: the version that the packages have is in it, and nothing else is unreleased', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'packages/servegym/package.json'), 'utf8'));
    assert.ok(
      readFileSync(join(root, 'CHANGELOG.md'), 'utf8').includes(`## [Unreleased]\n\n## [${version}] - `),
    );
  });

  it('has the lines of the changesets and what stood under Unreleased', () => {
    const text = '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n\n## [0.1.0] - 2026-01-01\n';
    assert.equal(
      releasedChangelog(text, '0.2.0', '2026-02-03', ['Two.\nMore of it.', '- Three.\n']),
      '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n- Two.\n  More of it.\n- Three.\n\n### Added\n\n- One.\n\n## [0.1.0] - 2026-01-01\n',
    );
  });

  it('is refused where it would be ambiguous', () => {
    assert.throws(
      () => releasedChangelog('# Changelog\n', '0.2.0', '2026-02-03', ['A.']),
      /Expected one line/,
    );
    const released = '## [Unreleased]\n\n## [0.2.0] - 2026-01-01\n';
    assert.throws(
      () => releasedChangelog(released, '0.2.0', '2026-02-03', ['A.']),
      /has a section for 0\.2\.0 already/,
    );
  });

  it('takes the text of a changeset without its front matter', () => {
    assert.equal(changesetText('---\n"servegym": minor\n---\n\nA line.\n'), 'A line.');
    assert.throws(() => changesetText('A line.'), /front matter|two lines/);
  });
});

describe('npm run release:version', () => {
  it('gives packages, lock file, Python package and changelog the next version', () => {
    for (const path of globSync(PATHS, { cwd: root }))
      cpSync(join(root, path), join(folder, path), { recursive: true });
    execFileSync('git', ['init', '--quiet', '--initial-branch=main'], { cwd: folder });
    writeFileSync(
      join(folder, '.changeset', 'a-test.md'),
      '---\n"@servegym/openenv": minor\n---\n\nA line for users.\n',
    );
    execFileSync(process.execPath, [join(folder, 'maintenance', 'release.ts')], {
      cwd: folder,
      stdio: 'pipe',
    });

    const read = (path: string) => readFileSync(join(folder, path), 'utf8');
    const [major, minor] = JSON.parse(
      readFileSync(join(root, 'packages/servegym/package.json'), 'utf8'),
    ).version.split('.');
    const version = `${major}.${Number(minor) + 1}.0`;
    const manifests = globSync('packages/*/package.json', { cwd: folder });
    assert.equal(manifests.length, 11);
    const lock = JSON.parse(read('package-lock.json')).packages;
    for (const path of manifests) {
      const manifest = JSON.parse(read(path));
      assert.equal(manifest.private, undefined, `${path}: npm publishes no private package`);
      assert.equal(manifest.version, version, path);
      assert.equal(lock[dirname(path)].version, version, path);
      for (const dependencies of [manifest.dependencies, manifest.devDependencies])
        for (const [name, range] of Object.entries(dependencies ?? {}))
          if (name.startsWith('@servegym/')) assert.equal(range, version, `${path}: ${name}`);
    }
    assert.match(read('clients/python/pyproject.toml'), new RegExp(`^version = "${version}"$`, 'm'));
    assert.match(
      read('clients/python/src/servegym/__init__.py'),
      new RegExp(`^__version__ = "${version}"$`, 'm'),
    );
    assert.match(
      read('CHANGELOG.md'),
      new RegExp(`## \\[Unreleased\\]\n\n## \\[${version}\\] - \\S+\n\n- A line for users\\.\n`),
    );
    assert.deepEqual(
      globSync('{.changeset,packages/*}/*.md', { cwd: folder }).filter((path) => !path.endsWith('README.md')),
      [],
    );
  });
});
