import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseSync } from 'oxc-parser';
import { build } from 'vitepress';
import { sections } from '../../docs/.vitepress/pages.ts';
import { buildProgram } from '../../packages/servegym/src/cli/program.ts';
import { launchChromium } from '../test-servers/chromium.ts';

const maintenance = dirname(import.meta.dirname);
const root = dirname(maintenance);
const BASE = '/made-up-base/';
/** Models that get pages; hundreds of pages would make the build of the site twice as long. */
const SERVED_MODELS = ['Llama-3-8B', 'Qwen3-32B'];

describe('the documentation site', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-docs-'));
  /** HTML of each page, by its path on the site. */
  const html = new Map<string, string>();
  before(async () => {
    execFileSync(process.execPath, [join(maintenance, 'docs-reference', 'write-reference.ts')]);
    execFileSync(process.execPath, [
      join(maintenance, 'docs-reference', 'write-servers.ts'),
      ...SERVED_MODELS,
    ]);
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
        const target = path === undefined ? undefined : (html.get(path) ?? html.get(`${path}index`));
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

  it('has a reference of all commands, exports and Python names', async () => {
    const reference = (page: string) => readFileSync(join(folder, 'reference', `${page}.md`), 'utf8');
    const { commands } = await buildProgram('all');
    assert.ok(commands.length > 10);
    for (const name of commands.map((command) => command.name()))
      assert.ok(html.get('reference/command-line')!.includes(`id="${name}"`), name);
    assert.match(reference('command-line'), /^\| `--port <number>` \| port to listen on/m);
    assert.match(reference('command-line'), /^### season serve$/m);

    for (const file of globSync('packages/*/src/index.ts', { cwd: root })) {
      const { module } = parseSync(file, readFileSync(join(root, file), 'utf8'));
      const exported = module.staticExports.flatMap(({ entries }) => entries);
      const page = reference(`typescript-${file.split(/[\\/]/)[1]}`);
      for (const { exportName } of exported)
        assert.ok(page.includes(`\n### ${exportName.name}\n`), `${exportName.name} of ${file}`);
    }
    assert.match(reference('typescript-openenv'), /^function createServer\(/m);
    assert.match(reference('python'), /^### ServeGymVectorEnv$/m);
    assert.match(reference('python'), /^def make_vec\(/m);
  });

  it('has a page for each model on each GPU, readable without a script, and models.json beside them', () => {
    const models = JSON.parse(readFileSync(join(folder, 'servers', 'models.json'), 'utf8'));
    assert.ok(models.length > 10);
    for (const { model, gpu, page, command } of models) {
      const text = html.get(`servers/${page}index`)!;
      assert.ok(text.includes(`${model} on ${gpu}`), page);
      assert.equal(text.match(/<svg class="curve"/g)?.length, 4, page);
      assert.ok(command.startsWith('vllm serve '), page);
      assert.ok(html.get('servers/index')!.includes(`href="${BASE}servers/${page}"`), page);
    }
  });

  it('fetches modules after the first paint, and no fonts', () => {
    for (const [page, text] of html) {
      if (page.startsWith('embed')) continue;
      assert.doesNotMatch(text, /<script type="module"|rel="modulepreload"|\.woff2/, page);
      assert.ok(text.includes(`src=\\"${BASE}servegym-sim.js\\"`), page);
    }
  });

  it('runs its modules in order, whichever comes first', async () => {
    const browser = await launchChromium();
    after(() => browser.close());
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('pageerror', ({ message }) => faults.push(message));
    await page.route('**', async (route) => {
      const path = new URL(route.request().url()).pathname.slice(BASE.length) || 'index.html';
      if (path.includes('metadata.')) await new Promise((late) => setTimeout(late, 1000));
      await route.fulfill({ path: join(folder, path) });
    });
    await page.goto(`http://site${BASE}`);
    await page.waitForFunction(() => '__vue_app__' in document.querySelector('#app')!);
    assert.deepEqual(faults, []);
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
