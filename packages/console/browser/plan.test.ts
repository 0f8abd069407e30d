import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type Page, pageHtml } from '@servegym/operators/report';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { assertAccessible, type ConsolePage } from './console-page.ts';
import { openPage, startBoth } from './start.ts';

const { browser, server } = await startBoth();
const folder = temporaryFolder();

const TRACE = [
  'arrival_s,input_tokens,output_tokens',
  ...Array.from({ length: 400 }, (_, i) => `${i / 2},${100 + (i % 7) * 50},${20 + (i % 5) * 10}`),
].join('\n');

const built = readFileSync(new URL('../dist/report.html', import.meta.url), 'utf8');

/** Opens the page that a command writes, as a file. */
async function openReport(report: Page, width: number): Promise<ConsolePage> {
  const path = join(folder, `${report.title}-${width}.html`);
  writeFileSync(path, pageHtml(built, report));
  const page = await openPage(browser, pathToFileURL(path).href, {
    ...{ viewport: { width, height: 900 }, reducedMotion: 'reduce' },
  });
  await page.view.getByRole('heading', { name: report.title }).waitFor();
  const overflow = await page.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.equal(overflow, 0);
  return page;
}

describe('the page for plans', () => {
  for (const [width, colorScheme] of [
    [390, 'dark'],
    [1440, 'light'],
  ] as const) {
    it(`plans for a trace that is dropped on it (${width} px, ${colorScheme})`, async () => {
      const page = await openPage(browser, `${server.url}/plan/`, {
        ...{ viewport: { width, height: 900 }, colorScheme, bypassCSP: true, reducedMotion: 'reduce' },
      });
      const { view } = page;
      await view.getByLabel('Requests/s').waitFor();
      await view.getByLabel('Trace').setInputFiles({
        name: 'log.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from(TRACE),
      });
      await view.getByText('400 lines').waitFor();
      assert.equal(await view.getByLabel('Requests/s').count(), 0);
      await view.getByText('GPUs: all').click();
      for (const box of await view.locator('.gpu-choices label').all())
        if ((await box.textContent()) !== 'L40S-48GB') await box.getByRole('checkbox').uncheck();
      let answer = '';
      await page.page.route('**/plans', async (route) => {
        const response = await route.fetch();
        answer = await response.text();
        await route.fulfill({ response });
      });
      await page.button('Plan').click();
      await view.getByText(/^Cheapest(?: that was measured)?: \d+ engines? of l40s-48gb/).waitFor();
      const rows = (of: typeof view) => of.getByLabel('Table of plans').locator('tbody tr');
      const plans = await rows(view).count();
      assert.ok(plans > 0);
      assert.equal(await view.locator('.xy circle').count(), plans);
      assert.match(await view.getByLabel('Command for vLLM').inputValue(), /^vllm serve /);
      const download = page.page.waitForEvent('download');
      await view.getByRole('link', { name: 'Save as JSON' }).click();
      const saved = JSON.parse(readFileSync((await (await download).path())!, 'utf8'));
      assert.deepEqual(saved, JSON.parse(answer.trim().split('\n').at(-1)!).result);
      await view.getByText('On assumptions, to be measured').click();
      const riskier = await view.getByLabel('Plans on assumptions').locator('tbody tr').count();
      assert.ok(riskier > 0);
      assert.deepEqual([saved.plans.length, saved.riskier.length], [plans, riskier]);
      const overflow = await page.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.equal(overflow, 0);
      await assertAccessible(page, 'a plan');

      const { sections } = JSON.parse(answer.trim().split('\n').at(-1)!);
      const more = { title: 'On Kubernetes', code: 'kind: Deployment' };
      const report = await openReport(
        { title: 'What to buy', lead: '400 requests', sections: [...sections, more] },
        width,
      );
      await report.view.getByText(/^Cheapest(?: that was measured)?: \d+ engines? of l40s-48gb/).waitFor();
      assert.equal(await rows(report.view).count(), plans);
      await report.view.getByText('On assumptions, to be measured').waitFor();
      await report.view.getByText('kind: Deployment').waitFor();
      await assertAccessible(report, 'the report of a plan');
    });
  }

  it('is reached from the console of every environment, and leads back', async () => {
    const page = await openPage(browser, `${server.url}/fleet/web/?policy=hand`);
    await page.untilWindow(0);
    await page.view.getByRole('link', { name: 'Plan' }).click();
    await page.page.waitForURL(`${server.url}/plan/`);
    await page.view.getByRole('link', { name: 'Console' }).click();
    await page.page.waitForURL(`${server.url}/web/**`);
    await page.untilWindow(0);
    await page.view.getByRole('link', { name: 'Plan' }).click();
    await page.page.waitForURL(`${server.url}/plan/`);
  });

  it('says what the server refuses, and stops when asked to', async () => {
    const page = await openPage(browser, `${server.url}/plan/`);
    page.expected = /422/;
    await page.view.getByLabel('Trace').setInputFiles({
      name: 'bad.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('a,b\n1,2\n'),
    });
    await page.button('Plan').click();
    await page.problem.getByText('bad.csv').waitFor();
    await page.button('Without the trace').click();
    await page.view.getByLabel('Requests/s').fill('6');
    await page.button('Plan').click();
    await page.button('Stop').click();
    await page.view.getByText('Stopped: ').waitFor();
    await page.button('Plan').waitFor();
  });
});

describe('the page of a report, opened from its file', () => {
  const dot = (x: number, y: number, hollow = false) => ({
    ...{ x, y, hollow, look: 'first' as const, radius: 3, title: `${x}` },
  });
  const sections: Page['sections'] = [
    { title: 'h100', paragraphs: ['40 configurations considered.'], look: 'heading' },
    { numbers: [['9', 'requests/s']] },
    { commands: [{ engine: 'vLLM', line: 'vllm serve it', notExpressed: ['aborts'] }] },
    {
      title: 'Load',
      chart: {
        label: 'Requests in time as the load grows',
        x: { title: 'requests/s', unit: 'amount' },
        y: { title: 'in time', unit: 'percent', domain: [0, 1.05] },
        dots: [dot(10, 1), dot(20, 0.4, true)],
      },
      look: 'half',
    },
    {
      table: {
        label: 'Ranking',
        names: ['#', 'settings'],
        rows: [
          ['1*', 'FP8'],
          ['D', 'FP16'],
        ],
        notes: ['* front'],
      },
    },
    { title: 'Not planned: 1', items: ['No room: l40s'], look: 'folded' },
  ];

  for (const width of [390, 1280]) {
    it(`shows its parts, with charts, tables and commands (${width} px)`, async () => {
      const page = await openReport({ title: 'Settings', lead: 'TTFT', sections }, width);
      await page.view.getByText('40 configurations considered.').waitFor();
      assert.equal(await page.view.getByLabel('Command for vLLM').inputValue(), 'vllm serve it');
      await page.view.getByText('Not in the line: aborts').waitFor();
      const load = page.view.getByRole('img', { name: /as the load grows/ });
      const looks = await load
        .locator('circle:has(title)')
        .evaluateAll((all) =>
          all.map((circle) => [
            circle.getAttribute('class'),
            circle.getAttribute('cx'),
            circle.getAttribute('cy'),
          ]),
        );
      const [[light, x1, y1], [heavy, x2, y2]] = looks;
      assert.deepEqual([light, heavy], ['first', 'first hollow']);
      assert.ok(Number(x1) < Number(x2) && Number(y1) < Number(y2));
      const ranking = page.view.getByRole('region', { name: 'Ranking' });
      assert.deepEqual(await ranking.locator('tbody tr.bold').allTextContents(), ['1*FP8']);
      assert.equal(await page.view.getByText('No room: l40s').isVisible(), false);
      await page.view.getByText('Not planned: 1').click();
      await page.view.getByText('No room: l40s').waitFor();
      await assertAccessible(page, 'a report');
    });
  }
});
