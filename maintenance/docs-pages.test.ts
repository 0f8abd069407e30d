import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { repositoryLink } from '../docs/.vitepress/pages.ts';
import { docsFigures } from './docs-figures.ts';

const root = dirname(import.meta.dirname);

it('data: the figures of the documentation are those that docs-figures.ts draws', async () => {
  for (const [name, svg] of Object.entries(await docsFigures()))
    assert.ok(
      readFileSync(join(root, 'docs/images', name), 'utf8') === svg,
      `docs/images/${name} is out of date. Run \`npx node maintenance/docs-figures.ts\`.`,
    );
});

it('the oldest Node that pages, packages and messages name is that of `engines`', () => {
  const { engines } = JSON.parse(readFileSync(join(root, 'packages/servegym/package.json'), 'utf8'));
  const named = ['*.md', 'docs/*.md', 'packages/*/README.md', 'clients/python/*.{md,toml}', 'deploy/**/*.py']
    .flatMap((pattern) => globSync(pattern, { cwd: root }))
    .flatMap((path) =>
      [
        ...readFileSync(join(root, path), 'utf8').matchAll(
          /\bNode (\d+\.\d+)|PATH if it is ([\d.]+)|binaries>=([\d.]+)/g,
        ),
      ].map((found) => `${path}: >=${found[1] ?? found[2] ?? found[3]}`),
    );
  assert.ok(named.length > 8, `${named}`);
  assert.deepEqual(
    named.filter((text) => !text.endsWith(`: ${engines.node}`)),
    [],
  );
});

describe('a link of a page', () => {
  it('to a file outside of docs leads to the repository', () => {
    const blob = 'https://github.com/servegym/servegym/blob/main';
    assert.equal(repositoryLink('../CONTRIBUTING.md#names', 'tune.md'), `${blob}/CONTRIBUTING.md#names`);
    assert.equal(repositoryLink('../biome.json', 'benchmarks.md'), `${blob}/biome.json`);
    assert.equal(
      repositoryLink('../packages/agents', 'agents.md'),
      'https://github.com/servegym/servegym/tree/main/packages/agents',
    );
  });

  it('to a page, a heading or another site stays', () => {
    for (const link of ['tune.md', '#names', 'https://example.org', 'images/tune.png', '/tune'])
      assert.equal(repositoryLink(link, 'tune.md'), undefined, link);
  });

  it('to a file that is not there fails the build', () => {
    assert.throws(
      () => repositoryLink('../no-such-file.ts', 'tune.md'),
      /docs\/tune\.md links to \.\.\/no-such-file\.ts/,
    );
  });
});
