import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { assertAccessible, type ConsolePage } from './console-page.ts';
import { openPage, startBoth } from './start.ts';

const { browser, server } = await startBoth();
const folder = temporaryFolder();

const TRACE = [
  'arrival_s,input_tokens,output_tokens',
  ...Array.from({ length: 400 }, (_, i) => `${i / 2},${100 + (i % 7) * 50},${20 + (i % 5) * 10}`),
].join('\n');

/** What a page is written from; `result` as the command prints it. */
interface Report {
  readonly kind: string;
  readonly title: string;
  readonly lead: string;
  readonly result: object;
  readonly notes?: readonly object[];
}
const { reportPage }: { reportPage(report: Report): string } = await import(
  new URL('../dist/report.js', import.meta.url).href
);

/** Opens the page that a command writes, as a file. */
async function openReport(report: Report, width: number): Promise<ConsolePage> {
  const path = join(folder, `${report.kind}-${width}.html`);
  writeFileSync(path, reportPage(report));
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
      await view.getByText(/^Cheapest(?: that was measured)?: \d+ × l40s-48gb/).waitFor();
      const rows = (of: typeof view) => of.getByLabel('Table of plans').locator('tbody tr');
      const plans = await rows(view).count();
      assert.ok(plans > 0);
      assert.equal(await view.locator('.xy circle').count(), plans);
      assert.match(await view.getByLabel('Command for vLLM').inputValue(), /^vllm serve /);
      const download = page.page.waitForEvent('download');
      await page.button('Save as CSV').click();
      const [header, ...lines] = readFileSync((await (await download).path())!, 'utf8')
        .trim()
        .split('\r\n');
      assert.match(header, /^profile,.*usd_per_hour.*confidence\.usd_per_hour\.low.*,command$/);
      await view.getByText('On assumptions, to be measured').click();
      const riskier = await view.getByLabel('Plans on assumptions').locator('tbody tr').count();
      assert.ok(riskier > 0);
      assert.equal(lines.length, plans + riskier);
      const overflow = await page.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.equal(overflow, 0);
      await assertAccessible(page, 'a plan');

      const { result } = JSON.parse(answer.trim().split('\n').at(-1)!);
      const notes = [{ title: 'On Kubernetes', code: 'kind: Deployment' }];
      const report = await openReport(
        { kind: 'plan', title: 'What to buy', lead: '400 requests', result, notes },
        width,
      );
      await report.view.getByText(/^Cheapest(?: that was measured)?: \d+ × l40s-48gb/).waitFor();
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
  const settings = { max_num_seqs: 256, quantization: 'FP16' };
  const estimate = (value: number) => ({ value, interval: { low: value - 1, high: value + 1 } });
  const candidate = (name: string, is_default: boolean) => ({
    ...{ settings: { ...settings, quantization: name }, is_default, on_front: !is_default },
    ...{ sustained_rps: estimate(9), sustained_rps_searched: estimate(8), over_defaults: estimate(2) },
    ...{ ttft_p99_ms: 120, tpot_p99_ms: 20, usd_per_million_output_tokens: 0.5, quality: 0.99 },
  });
  const tuned = (profile: string) => ({
    ...{ profile, considered: 40, simulated_requests: 1000, wall_s: 2, reference_rps: 5 },
    candidates: [candidate('FP8', false), candidate('FP16', true)],
    front: [{ settings, sustained_rps: 9, ttft_p99_ms: 120, tpot_p99_ms: 20, quality: 1 }],
    deployment: { replicas: 2, usd_per_hour: 8 },
    commands: [{ engine: 'vLLM', line: 'vllm serve it', not_expressed: [] }],
    verdict: { headline: 'One engine sustains 9 requests/s.' },
    page: {
      source: 'measured, somewhere',
      curves: {
        winner: [
          { rate: 10, good: 1, sloUse: 0.5 },
          { rate: 20, good: 0.4, sloUse: 3 },
        ],
        defaults: [],
      },
      ...{ others: [], impossible: [] },
    },
  });

  for (const width of [390, 1280]) {
    it(`shows what was tuned, with charts and commands (${width} px)`, async () => {
      const impossible = {
        page: { source: 'estimated', curves: {}, others: [], impossible: ['Nothing meets it.'] },
      };
      const result = [tuned('h100'), { ...tuned('l40s'), nearest: {}, ...impossible }];
      const page = await openReport({ kind: 'tune', title: 'Settings', lead: 'TTFT', result }, width);
      await page.view.getByText('Nothing meets it.').waitFor();
      assert.equal(await page.view.getByLabel('Command for vLLM').inputValue(), 'vllm serve it');
      await page.view.getByText('Settings: quantization FP8; all others as vLLM’s defaults').waitFor();
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
      assert.deepEqual([light, heavy], ['first', 'first hollow'], 'filled where the SLO holds');
      assert.ok(Number(x1) < Number(x2) && Number(y1) < Number(y2));
      assert.equal(await page.view.getByRole('region', { name: 'Ranking' }).locator('tbody tr').count(), 2);
      await assertAccessible(page, 'the report of a tune');
    });
  }

  it('shows the charts of a training, the learning curve first', async () => {
    const result = [
      { steps: 10, mean_return: null, entropy: 3 },
      { steps: 20, mean_return: 5, entropy: 2 },
    ];
    const page = await openReport({ kind: 'training', title: 'PPO', lead: '', result }, 1280);
    assert.deepEqual(await page.view.locator('figure h2').allTextContents(), ['mean return', 'entropy']);
    await assertAccessible(page, 'the report of a training');
  });
});
