import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { LocalJobs } from '@servegym/jobs';
import { TUNE_JOB_KINDS } from '@servegym/operators';
import { vllmDefaults } from '@servegym/operators/browser';
import { atListPrice, findProfile, listProfiles } from '@servegym/profiles';
import { parseTrace } from '@servegym/simulator';
import axe from 'axe-core';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../../../maintenance/test-servers/chromium.ts';
import { EFFORTS, type LoadCurve, loadFilm, wholeCurve } from '../src/load-curve.ts';
import { type LogAnswer, planLog } from '../src/plan-log.ts';
import { DIST, openPage, serveFiles } from './static-files.fixture.ts';

/** A guard against hanging. */
const LONGEST_WAIT_MS = 120_000;
const LOAD = { rate: 6, input: 700, output: 200, sloTtft: 800, sloTpot: 40 };
const ATTRIBUTES = 'rate="6" input="700" output="200" slo-ttft="800" slo-tpot="40"';

const SCRIPT = '<script type="module" src="./servegym-sim.js"></script>';
const element = (attributes: string) => `${SCRIPT}<servegym-sim ${attributes}></servegym-sim>`;

/** The curve of the full effort, as JSON. */
async function shownCurve(page: Page): Promise<string> {
  await page.locator('servegym-sim .charts[aria-busy=false] svg').first().waitFor();
  return page.evaluate(() => {
    const { curve } = document.querySelector('servegym-sim') as unknown as { curve: LoadCurve };
    return JSON.stringify(curve);
  });
}

function nodeCurve(name: string, load = LOAD): string {
  const profile = atListPrice(findProfile(name));
  const deployment = { name, profile, settings: vllmDefaults(profile), engines: 1, notSimulated: [] };
  return JSON.stringify(wholeCurve(deployment, load, EFFORTS.at(-1)!));
}

const hash = (text: string) => createHash('sha256').update(text).digest('hex');

describe('<servegym-sim>', () => {
  let browser: Browser;
  let files: Awaited<ReturnType<typeof serveFiles>>;
  before(async () => {
    files = await serveFiles({
      'plain.html': element(`model="llama-3-8b" gpu="h100" ${ATTRIBUTES}`),
      'tensor.html': element(`model="Llama-3-70B" gpu="H100-80GB" count="4" ${ATTRIBUTES}`),
      'few.html': element('model="Llama-2-7B" gpu="h100" slo-ttft="2000" slo-tpot="100"'),
      'below.html': `<p style="height: 300vh"></p>${element('')}`,
      'wrong.html': element('model="Llama-3-8B" gpu="h100" count="3"'),
    });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    files?.server.closeAllConnections();
    files?.server.close();
  });

  const open = (path: string, options = {}) =>
    openPage(browser, new URL(path, files.url).href, LONGEST_WAIT_MS, options);

  it('shows the bits that Node computes, from files under a path, and asks for nothing else', async () => {
    for (const [path, name] of [
      ['plain.html', 'h100-80gb-llama-3-8b'],
      ['tensor.html', 'h100-80gb-llama-3-70b-tp4'],
    ] as const) {
      await using shown = await open(path);
      assert.equal(hash(await shownCurve(shown.page)), hash(nodeCurve(name)), name);
      assert.deepEqual(
        shown.asked.filter((url) => !url.startsWith(files.url)),
        [],
      );
      const profiles = shown.asked
        .filter((url) => /profiles\//.test(url))
        .map((url) => url.split('/').at(-1));
      assert.deepEqual([...new Set(profiles)].sort(), [`${name}.json`, 'index.json']);
    }
  });

  it('runs in a page of another origin', async () => {
    await using shown = await open('plain.html');
    await shown.page.setContent(
      element(`model="llama-3-8b" gpu="h100" ${ATTRIBUTES}`).replace('./', files.other),
    );
    assert.equal(hash(await shownCurve(shown.page)), hash(nodeCurve('h100-80gb-llama-3-8b')));
  });

  it('fetches its parts when a person comes near', async () => {
    await using shown = await open('below.html');
    await shown.page.evaluate(() => new Promise((seen) => requestAnimationFrame(() => setTimeout(seen))));
    assert.ok(!shown.asked.some((url) => url.includes('/worker.js') || url.includes('/profiles/')));
    await shown.page.mouse.wheel(0, 1e4);
    await shownCurve(shown.page);
  });

  it('takes a pasted `vllm serve` line, and says what of it is not simulated', async () => {
    await using shown = await open('plain.html');
    await shownCurve(shown.page);
    await shown.page.getByText('Paste a').click();
    const line =
      'vllm serve meta-llama/Meta-Llama-3-70B-Instruct --tensor-parallel-size 4 --max-num-seqs 64 --made-up 3';
    await shown.page.getByLabel('Line, Kubernetes manifest').fill(line);
    await shown.page.getByText('Not simulated: --made-up 3').waitFor();
    const { profile } = JSON.parse(await shownCurve(shown.page)) as LoadCurve;
    assert.equal(profile, 'h100-80gb-llama-3-70b-tp4');
    await shown.page.getByLabel('Line, Kubernetes manifest').fill('vllm serve some/model');
    await shown.page.getByRole('alert').filter({ hasText: 'some/model is not known' }).waitFor();
  });

  it('keeps its state in the address, and is moved by the keyboard', async () => {
    await using shown = await open('plain.html');
    const before = await shownCurve(shown.page);
    await shown.page.getByRole('slider', { name: 'Requests/s' }).focus();
    await shown.page.keyboard.press('ArrowRight');
    await shown.page.waitForURL(/rate=/);
    await shown.page.getByLabel('GPU', { exact: true }).selectOption('L4-24GB');
    await shown.page.waitForURL(/gpu=L4-24GB/);
    await shown.page.getByRole('status').filter({ hasText: 'L4-24GB' }).waitFor({ state: 'attached' });
    const changed = await shownCurve(shown.page);
    await shown.page.getByText('Embed this').click();
    const html = await shown.page.getByLabel('HTML of this element').inputValue();
    const [, frame] = /<iframe src="([^"]+)"/.exec(html)!;
    await using framed = await open(frame!);
    assert.equal(await shownCurve(framed.page), changed);
    assert.notEqual(changed, before);
    await using again = await open(shown.page.url());
    assert.equal(await shownCurve(again.page), changed);
  });

  it('shows requests on their way, and lets them stand still', async () => {
    const profile = atListPrice(findProfile('h100-80gb-llama-3-8b'));
    const deployment = { name: '', profile, settings: vllmDefaults(profile), engines: 1, notSimulated: [] };
    const { requests } = loadFilm(deployment, LOAD);
    for (const reducedMotion of ['reduce', 'no-preference'] as const) {
      await using shown = await open('plain.html', { reducedMotion });
      const film = shown.page.locator('svg.film');
      await film.waitFor();
      assert.equal(await film.locator('circle').count(), requests.length);
      await film.scrollIntoViewIfNeeded();
      const stands = () => film.evaluate((svg: SVGSVGElement) => svg.animationsPaused());
      if (reducedMotion === 'no-preference')
        await film.evaluate(async (svg: SVGSVGElement) => {
          while (svg.animationsPaused()) await new Promise(requestAnimationFrame);
        });
      assert.equal(await stands(), reducedMotion === 'reduce');
      await shown.page.getByRole('button', { name: reducedMotion === 'reduce' ? 'Play' : 'Pause' }).click();
      assert.equal(await stands(), reducedMotion !== 'reduce');
      // A request is where its times say.
      const [i, [, , first, last]] = [...requests.entries()].find(([, [arrival]]) => arrival > 0)!;
      await film.evaluate(
        (svg: SVGSVGElement, at) => svg.setCurrentTime(at),
        (20 * (first + last)) / 2 / ((1000 * 80) / LOAD.rate),
      );
      const x = await film
        .locator('circle')
        .nth(i)
        .evaluate((dot: SVGCircleElement) => dot.cx.animVal.value);
      assert.ok(reducedMotion === 'reduce' || Math.abs(x - 475) < 1, `${x}`);
    }
  });

  describe('a log that is dropped on it', () => {
    const rows = Array.from({ length: 400 }, (_, i) => ({
      ...{ arrival_s: i / 4, input_tokens: 300 + ((i * 97) % 900), output_tokens: 50 + ((i * 31) % 200) },
    }));
    const csv = `arrival_s,input_tokens,output_tokens\n${rows.map((row) => Object.values(row).join(',')).join('\n')}\n`;
    const files = {
      'log.csv': Buffer.from(csv),
      'log.jsonl.gz': gzipSync(rows.map((row) => JSON.stringify(row)).join('\n')),
      'log.parquet': Buffer.from(
        parquetWriteBuffer({
          columnData: Object.keys(rows[0]!).map((name) => ({
            ...{ name, data: rows.map((row) => row[name as 'arrival_s']), type: 'DOUBLE' as const },
          })),
        }),
      ),
    };
    /** The answer to a log, without the network. */
    const answerTo = async (page: Page, name: string, buffer: Buffer): Promise<LogAnswer> => {
      const answer = page.evaluate(
        () =>
          new Promise<LogAnswer>((resolve) => {
            addEventListener('servegym-plan', (event) => resolve((event as CustomEvent).detail), {
              once: true,
            });
          }),
      );
      await page
        .locator('servegym-sim input[type=file]')
        .setInputFiles({ name, mimeType: 'text/plain', buffer });
      return answer;
    };

    it('is planned for as by `plan` on threads of Node, with the network cut', async () => {
      await using shown = await open('few.html');
      await shownCurve(shown.page);
      // Its parts are fetched once.
      await answerTo(shown.page, 'log.parquet', files['log.parquet']);
      const before = shown.asked.length;
      await shown.page.context().setOffline(true);
      const profiles = listProfiles().filter(({ model }) => model.name === 'Llama-2-7B');
      const jobs = new LocalJobs({ kinds: TUNE_JOB_KINDS, threads: 2 });
      const bounds = { ttft: 2000, tpot: 100 };
      const node = await planLog(parseTrace(csv, 'log.csv'), profiles.map(atListPrice), bounds, jobs);
      await jobs.close();
      assert.ok(node.riskier.length > 0);
      for (const [name, buffer] of Object.entries(files))
        assert.deepEqual(await answerTo(shown.page, name, buffer), node, name);
      assert.equal(shown.asked.length, before);
      assert.match(await shown.page.getByRole('region', { name: 'Plans' }).innerText(), /llama-2-7b/);
      await shown.page.getByText('400 requests in 0.0277 h, 4 a second').waitFor();
    });

    it('is given up when asked to, and what is wrong with it is said', async () => {
      await using shown = await open('few.html');
      await shownCurve(shown.page);
      const input = shown.page.locator('servegym-sim input[type=file]');
      const many = `arrival_s,input_tokens,output_tokens\n${'1,100,100\n'.repeat(300_000)}`;
      await input.setInputFiles({ name: 'many.csv', mimeType: 'text/csv', buffer: Buffer.from(many) });
      await shown.page.getByRole('button', { name: 'Cancel' }).click();
      await shown.page.getByText('Cancelled.').waitFor();
      await input.setInputFiles({
        name: 'bad.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from(`${csv}x,1,2\n`),
      });
      await shown.page.getByText(/bad\.csv:402/).waitFor();
      assert.ok(await shown.page.getByRole('button', { name: 'Cancel' }).isHidden());
    });
  });

  it('names the values there are, where an attribute has none of them', async () => {
    await using shown = await open('wrong.html');
    await shown.page
      .getByRole('alert')
      .filter({ hasText: 'count: expected one of 1, 2, 4 for Llama-3-8B on H100-80GB, got 3' })
      .waitFor();
  });

  it('has no fault of accessibility, light and dark, wide and narrow', async () => {
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1280, 390]) {
        await using shown = await open('plain.html', { colorScheme, viewport: { width, height: 900 } });
        await shown.page.addStyleTag({ content: ':root { color-scheme: light dark }' });
        await shownCurve(shown.page);
        await shown.page.evaluate(axe.source);
        const found = await shown.page.evaluate('axe.run()');
        const { violations } = found as axe.AxeResults;
        assert.deepEqual(
          violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.html}`),
          [],
        );
        const overflow = await shown.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${overflow} px too wide at ${width}`);
      }
  });

  it('loads at most 60 kB for engine and element, and 10 kB for a profile', () => {
    const size = (name: string) => gzipSync(readFileSync(join(DIST, name)), { level: 9 }).length;
    const loaded = new Set<string>();
    const load = (name: string): void => {
      if (loaded.has(name)) return;
      loaded.add(name);
      const text = readFileSync(join(DIST, name), 'utf8');
      for (const [, path] of text.matchAll(/(?:from|import)\s*"(\.[^"]+)"/g))
        load(join(name, '..', path).replaceAll('\\', '/'));
    };
    load('servegym-sim.js');
    load('worker.js');
    const bytes = [...loaded].reduce((sum, name) => sum + size(name), 0);
    assert.ok(bytes <= 60_000, `${bytes} bytes: ${[...loaded].join(', ')}`);
    for (const name of readdirSync(join(DIST, 'profiles')))
      assert.ok(size(`profiles/${name}`) <= 10_000, `${name}: ${size(`profiles/${name}`)} bytes`);
  });
});
