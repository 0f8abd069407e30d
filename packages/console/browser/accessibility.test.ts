import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertAccessible } from './axe.ts';
import { eventually } from './console-page.ts';
import { openPage, startBoth } from './start.ts';

const { browser, server } = await startBoth();

describe('axe-core finds no serious fault', () => {
  for (const colorScheme of ['dark', 'light'] as const) {
    it(`with ${colorScheme} colours: playing, side by side, at the end, and in every panel`, async () => {
      const page = await openPage(
        browser,
        `${server.url}/web/?task=static_workload&seed=1&policy=hand`,
        // Colours on their way from one to another have no contrast of their own.
        { colorScheme, bypassCSP: true, reducedMotion: 'reduce' },
      );
      await page.untilWindow(0);
      await assertAccessible(page, 'by hand');
      for (const name of ['Share', 'Leaderboard', 'Developers', 'Readme', 'Keys and terms']) {
        const panel = await page.open(name);
        await panel.locator('p, section').first().waitFor();
        await assertAccessible(page, name);
        await page.page.keyboard.press('Escape');
        await panel.waitFor({ state: 'detached' });
      }
      await page.choice('Played by').selectOption('heuristic');
      await page.choice('Compare with').selectOption('default');
      await page.view.getByRole('article').nth(1).waitFor();
      await page.untilOver();
      await assertAccessible(page, 'two runs at their end');
      const kept = await page.open('Runs');
      await kept.getByRole('listitem').nth(1).waitFor();
      await assertAccessible(page, 'the runs that the browser keeps');
    });
  }
});

describe('axe-core finds no serious fault', () => {
  for (const [screen, colorScheme, width] of [
    ['phone', 'dark', 390],
    ['desk', 'light', 1440],
  ] as const) {
    it(`on a ${screen}: a wrong address, the menu, the tour, a recording, other environments`, async () => {
      const open = async (path: string) => {
        const options = { colorScheme, bypassCSP: true, reducedMotion: 'reduce' } as const;
        const view = { ...options, viewport: { width, height: 900 } };
        const page = await openPage(browser, `${server.url}${path}`, view);
        await page.untilWindow(0);
        return page;
      };
      const page = await open('/web/?task=nope&policy=heuristic');
      await page.problem.waitFor();
      await assertAccessible(page, `a wrong address`);
      await page.button('Close').click();
      await page.view.locator('.options-menu summary').click();
      await page.choice('Shift').waitFor();
      await assertAccessible(page, `the menu`);
      await page.page.keyboard.press('Escape');
      await page.button('Step').click();
      await page.untilWindow(1);
      const shared = await page.open('Share');
      await shared.getByText('sha256:').waitFor();
      const link = await shared.getByLabel('Link to the episode').inputValue();
      await page.page.keyboard.press('Escape');
      await shared.waitFor({ state: 'hidden' });
      await page.page.keyboard.press('?');
      await page.button('Take the tour').click();
      await page.view.getByRole('dialog', { name: /^Tour, 1 of / }).waitFor();
      await assertAccessible(page, `the tour`);
      await page.close();

      const recording = await open(new URL(link).pathname + new URL(link).hash);
      await recording.view.getByText('The recording stops').waitFor();
      await assertAccessible(recording, `a recording`);
      await recording.close();

      for (const name of ['fleet', 'inferencegym', 'benchmark']) {
        const other = await open(`/${name}/web/?seed=1`);
        await assertAccessible(other, `${name}, before its first window`);
        await other.button('Step').click();
        await other.untilWindow(1);
        await assertAccessible(other, `${name}`);
        await other.close();
      }
    });
  }
});

describe('without a mouse', () => {
  it('every control of the page is reached by Tab, with a visible mark', async () => {
    const page = await openPage(browser, `${server.url}/web/?task=static_workload&seed=1&policy=hand`);
    await page.untilWindow(0);
    const wanted = await page.page
      .locator(
        'main button:visible, main select:visible, main input:visible, header button:visible, header select:visible',
      )
      .evaluateAll(
        (controls) => controls.filter((control) => !(control as HTMLButtonElement).disabled).length,
      );
    const reached = new Set<string>();
    for (let i = 0; i < wanted + 20; i++) {
      await page.page.keyboard.press('Tab');
      reached.add(
        await page.page.evaluate(() => {
          const element = document.activeElement as HTMLElement;
          const { outlineStyle } = getComputedStyle(element);
          const holder = element.parentElement && getComputedStyle(element.parentElement).outlineStyle;
          const mark = outlineStyle !== 'none' || holder !== 'none' ? '' : ' without a mark';
          return `${element.tagName} ${element.getAttribute('aria-label') ?? element.id}${element.textContent?.slice(0, 20)}${mark}`;
        }),
      );
    }
    const names = [...reached];
    assert.deepEqual(
      names.filter((name) => name.endsWith('without a mark') && !name.startsWith('BODY')),
      [],
    );
    for (const name of ['Share', 'Step', 'Window shown', 'Batch cap', 'Compare with', 'Keys and terms'])
      assert.ok(
        names.some((text) => text.includes(name)),
        `${name} among ${names.join('; ')}`,
      );
  });

  it('a knob is turned by its arrow keys, and the number is told', async () => {
    const page = await openPage(browser, `${server.url}/web/?task=static_workload&seed=1&policy=hand`);
    await page.untilWindow(0);
    const cap = page.choice('Batch cap');
    const before = await cap.getAttribute('aria-valuetext');
    await cap.focus();
    await page.page.keyboard.press('ArrowRight');
    await eventually(
      () => cap.getAttribute('aria-valuetext'),
      (text) => text !== before,
    );
    assert.equal(await page.window(), 0, 'and no window is played');
  });
});
