import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { assertAccessible } from './axe.ts';
import { openPage, startBoth } from './start.ts';

const { browser, server } = await startBoth();

const TRACE = [
  'arrival_s,input_tokens,output_tokens',
  ...Array.from({ length: 400 }, (_, i) => `${i / 2},${100 + (i % 7) * 50},${20 + (i % 5) * 10}`),
].join('\n');

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
      await page.button('Plan').click();
      await page.problem.getByText('Drop a trace first').waitFor();
      await view.getByLabel('Trace').setInputFiles({
        name: 'log.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from(TRACE),
      });
      await view.getByText('400 lines').waitFor();
      await view.getByText('GPUs: all').click();
      for (const box of await view.locator('.gpu-choices label').all())
        if ((await box.textContent()) !== 'L40S-48GB') await box.getByRole('checkbox').uncheck();
      await page.button('Plan').click();
      await view.getByText(/^Cheapest: \d+ × l40s-48gb/).waitFor();
      const plans = await view.locator('tbody tr').count();
      assert.ok(plans > 0);
      assert.equal(await view.locator('.front circle').count(), plans);
      assert.match(await view.getByLabel('Command for vLLM').inputValue(), /^vllm serve /);
      const download = page.page.waitForEvent('download');
      await page.button('Save as CSV').click();
      const [header, ...rows] = readFileSync((await (await download).path())!, 'utf8')
        .trim()
        .split('\r\n');
      assert.match(header, /^profile,.*usd_per_hour.*confidence\.usd_per_hour\.low.*,command$/);
      assert.equal(rows.length, plans);
      const overflow = await page.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.equal(overflow, 0);
      await assertAccessible(page, 'a plan');
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
    await page.button('Example trace').click();
    await page.button('Plan').click();
    await page.button('Stop').click();
    await page.view.getByText('Stopped: ').waitFor();
    await page.button('Plan').waitFor();
  });
});
