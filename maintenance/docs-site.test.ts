import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { build } from 'vitepress';
import { sections } from '../docs/.vitepress/pages.ts';
import { repositoryLink } from '../docs/.vitepress/repository-links.ts';
import { docsFigures } from './docs-figures.ts';
import { readSourceFile } from './source-file.ts';

const root = dirname(import.meta.dirname);
const BASE = '/made-up-base/';

describe('the documentation site', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-docs-'));
  /** HTML of each page, by its path on the site. */
  const html = new Map<string, string>();
  before(async () => {
    execFileSync(process.execPath, [join(import.meta.dirname, 'docs-reference', 'write-reference.ts')]);
    process.env.SERVEGYM_DOCS_BASE = BASE;
    process.env.SERVEGYM_DOCS_ORIGIN = 'https://example.org';
    await build(join(root, 'docs'), { outDir: folder });
    for (const file of globSync('**/*.html', { cwd: folder }))
      html.set(file.replace(/(^index)?\.html$/, ''), readFileSync(join(folder, file), 'utf8'));
  });
  after(() => rmSync(folder, { recursive: true }));

  it('has every page of docs in its sidebar', () => {
    const start = html.get('')!;
    const tune = html.get('tune')!;
    assert.match(start, /Learn to run an LLM inference server/);
    for (const file of globSync('*.md', { cwd: join(root, 'docs'), exclude: ['index.md', 'README.md'] })) {
      const path = file.slice(0, -'.md'.length);
      assert.ok(html.has(path), path);
      assert.ok(tune.includes(`href="${BASE}${path}"`), `${path} is missing in the sidebar`);
    }
  });

  it('links only to pages, headings, images and files that it has', () => {
    const broken = [...html].flatMap(([page, text]) =>
      [...text.matchAll(/<(?:a|img)\b[^>]*? (?:href|src)="([^"]*)"/g)].flatMap(([, href]) => {
        if (/^[a-z]+:/.test(href!)) return [];
        const { pathname, hash } = new URL(href!, `http://site${BASE}${page}`);
        const path = pathname.startsWith(BASE) ? decodeURI(pathname.slice(BASE.length)) : undefined;
        const target = path === undefined ? undefined : html.get(path);
        const id = decodeURIComponent(hash.slice(1));
        const isThere =
          target === undefined
            ? path !== undefined && existsSync(join(folder, path))
            : id === '' || target.includes(` id="${id}"`);
        return isThere ? [] : [`${page} -> ${href}`];
      }),
    );
    assert.deepEqual(broken, []);
  });

  it('has a reference of all commands, routes, exports and Python names', () => {
    const reference = (page: string) => readFileSync(join(folder, 'reference', `${page}.md`), 'utf8');
    const program = readFileSync(join(root, 'packages/servegym/src/cli/program.ts'), 'utf8');
    const commands = [...program.matchAll(/^ {4}name: '(\w+)'/gm)].map(([, name]) => name!);
    assert.ok(commands.length > 20);
    for (const name of commands)
      assert.ok(html.get('reference/command-line')!.includes(`id="${name}"`), name);
    assert.match(reference('command-line'), /^\| `--port <number>` \| port to listen on/m);
    assert.match(reference('command-line'), /^### season serve$/m);

    for (const route of ['POST /reset', 'GET /tasks', 'POST /grader'])
      assert.ok(reference('http-llmserve').includes(`\n### ${route}\n`), route);
    assert.match(
      reference('http-llmserve'),
      /^\| `action\.batch_cap` \(required\) \| `integer 1 to 512` \|/m,
    );
    assert.match(reference('http-fleet'), /`action\.replicas`/);

    for (const file of globSync('packages/*/src/index.ts', { cwd: root })) {
      const exported = [...readSourceFile(file, readFileSync(join(root, file), 'utf8')).exports];
      const page = reference(`typescript-${file.split(/[\\/]/)[1]}`);
      for (const { name } of exported) assert.ok(page.includes(`\n### ${name}\n`), `${name} of ${file}`);
    }
    assert.match(reference('typescript-openenv'), /^function createServer</m);
    assert.match(reference('python'), /^### ServeGymVectorEnv$/m);
    assert.match(reference('python'), /^def make_vec\(/m);
  });

  it('finds words of the pages in its search index', () => {
    const [index, ...more] = globSync('assets/**/@localSearchIndexroot.*.js', { cwd: folder });
    assert.equal(more.length, 0);
    assert.match(readFileSync(join(folder, index!), 'utf8'), /preemption/);
    assert.match(readFileSync(join(folder, index!), 'utf8'), /reference\/python#servegymvectorenv/);
  });

  it('lists its pages for language models, and holds their texts', () => {
    const list = readFileSync(join(folder, 'llms.txt'), 'utf8');
    const texts = readFileSync(join(folder, 'llms-full.txt'), 'utf8');
    for (const { pages } of sections())
      for (const { path, title, markdown } of pages) {
        assert.ok(list.includes(`- [${title}](https://example.org${BASE}${path}.md): `), path);
        assert.ok(texts.includes(markdown), path);
        assert.equal(readFileSync(join(folder, `${path}.md`), 'utf8'), markdown);
      }
  });
});

it('data: the figures of the documentation are those that docs-figures.ts draws', () => {
  for (const [name, svg] of Object.entries(docsFigures()))
    assert.ok(
      readFileSync(join(root, 'docs/images', name), 'utf8') === svg,
      `docs/images/${name} is out of date. Run \`npx node maintenance/docs-figures.ts\`.`,
    );
});

describe('a link of a page', () => {
  it('to a file outside of docs leads to the repository', () => {
    const blob = 'https://github.com/servegym/servegym/blob/main';
    assert.equal(repositoryLink('../CONTRIBUTING.md#names', 'tune.md'), `${blob}/CONTRIBUTING.md#names`);
    assert.equal(repositoryLink('benchmarks.json', 'benchmarks.md'), `${blob}/docs/benchmarks.json`);
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
