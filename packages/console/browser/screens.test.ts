import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Response } from 'playwright-core';
import { assertAccessible, ConsolePage, eventually } from './console-page.ts';
import { closeAfterTest, openPage, startBoth, startReverseProxy } from './start.ts';

// As in a Space: behind a proxy that names the host.
const { browser, server } = await startBoth('--trust-proxy', '--allowed-hosts', '*.hf.space');

describe('under a path prefix', () => {
  it('everything that the page asks for stays under the prefix', async () => {
    const proxy = await startReverseProxy(server.url, '/spaces/somebody/servegym');
    closeAfterTest(() => proxy.close());
    const page = await openPage(browser, `${proxy.url}/web`);
    await page.untilWindow(2);
    assert.equal(new URL(page.page.url()).pathname, '/spaces/somebody/servegym/web/');
    assert.deepEqual(
      proxy.strays.filter((path) => path !== '/favicon.ico'),
      [],
    );
  });
});

describe('inside a frame of Hugging Face', () => {
  it('plays', async () => {
    const context = await browser.newContext();
    const card = 'https://huggingface.co/spaces/somebody/servegym';
    const space = 'https://somebody-servegym.hf.space';
    await context.route(card, (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<iframe src="${space}/web/" width="1200" height="800" sandbox="allow-scripts allow-same-origin"></iframe>`,
      }),
    );
    await context.route(`${space}/**`, async (route) => {
      const { pathname, search } = new URL(route.request().url());
      const headers = { ...(await route.request().allHeaders()), 'x-forwarded-host': new URL(space).host };
      const response = await route.fetch({ url: `${server.url}${pathname}${search}`, headers });
      await route.fulfill({ response });
    });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(card);
    const frame = await (await page.waitForSelector('iframe')).contentFrame();
    assert.ok(frame);
    const embedded = new ConsolePage(page, frame, faults);
    await embedded.untilWindow(2);
    embedded.assertNoFaults();
    // The page goes on playing: what is under way when the context closes has nobody to answer to.
    await context.unrouteAll({ behavior: 'ignoreErrors' });
    await context.close();
  });

  it('plays even where the browser lets it keep nothing', async () => {
    const context = await browser.newContext();
    await context.addInitScript(() => {
      Object.defineProperty(window, 'localStorage', {
        get() {
          throw new DOMException('denied', 'SecurityError');
        },
      });
    });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(`${server.url}/web/`);
    const console_ = new ConsolePage(page, page, faults);
    await console_.untilWindow(1);
    await console_.button('Use dark colours').click();
    console_.assertNoFaults();
    await context.close();
  });
});

/** 64 kB, and 3 % that another Node, zlib or browser, or another release of the bundler, may add to the same page. */
const MOST_BYTES = 66_000;

describe('a first visit', () => {
  it('loads about 64 kB at most, gzipped, before the first window is played', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const sizes = new Map<string, Promise<number>>();
    const note = (response: Response) => {
      const url = response.url();
      if (/\/web\/(assets\/.*)?$/.test(new URL(url).pathname) && response.status() === 200)
        sizes.set(
          url,
          response.body().then((body) => gzipSync(body, { level: 9 }).length),
        );
    };
    page.on('response', note);
    await page.goto(`${server.url}/web/`);
    await new ConsolePage(page, page, []).untilWindow(1);
    // What comes later would be read from a page that is closed.
    page.off('response', note);
    const bytes = (await Promise.all(sizes.values())).reduce((sum, size) => sum + size, 0);
    assert.ok(bytes > 20_000 && bytes < MOST_BYTES, `${bytes} bytes`);
    await context.close();
  });
});

describe('on any screen', () => {
  for (const [width, height] of [
    [360, 740],
    [820, 1180],
    [1440, 900],
    [3840, 2160],
  ]) {
    it(`fits a width of ${width} px without scrolling sideways`, async () => {
      const page = await openPage(browser, `${server.url}/web/`, { viewport: { width, height } });
      await page.untilWindow(2);
      const overflow = await page.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.equal(overflow, 0);
      const outside = await page.page.evaluate(
        () =>
          [...document.querySelectorAll('button, select, input, a')]
            .map((control) => control.getBoundingClientRect())
            .filter(({ left, right, width: wide }) => wide > 0 && (left < 0 || right > innerWidth)).length,
      );
      assert.equal(outside, 0, 'controls outside the screen');
    });
  }

  it('keeps the name and the controls of the top bar apart on a phone', async () => {
    const page = await openPage(browser, `${server.url}/web/`, { viewport: { width: 390, height: 844 } });
    await page.untilWindow(0);
    const touching = await page.page.evaluate(() => {
      const boxes = [...document.querySelectorAll('h1, header :is(a, button, select, input, summary)')].map(
        (element) => {
          const content = document.createRange();
          content.selectNodeContents(element);
          const { left, right, top, bottom } = (
            element.tagName === 'H1' ? content : element
          ).getBoundingClientRect();
          return { name: element.ariaLabel ?? element.textContent, left, right, top, bottom };
        },
      );
      return boxes.flatMap((one, i) =>
        boxes
          .slice(i + 1)
          .filter(
            (other) =>
              one.left < other.right + 2 &&
              other.left < one.right + 2 &&
              one.top < other.bottom &&
              other.top < one.bottom,
          )
          .map((other) => `${one.name} and ${other.name}`),
      );
    });
    assert.deepEqual(touching, []);
  });

  it('follows the system’s colours until somebody chooses', async () => {
    const page = await openPage(browser, `${server.url}/web/`, { colorScheme: 'dark' });
    await page.untilWindow(0);
    const background = () =>
      page.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await background();
    await page.button('Use light colours').click();
    const light = await background();
    assert.notEqual(light, dark);
    await page.page.reload();
    await page.untilWindow(0);
    assert.equal(await background(), light);
  });

  it('waits to be started where the person wants less motion', async () => {
    const page = await openPage(browser, `${server.url}/web/`, { reducedMotion: 'reduce' });
    await page.untilWindow(0);
    await page.button('Play').waitFor();
    assert.equal(await page.window(), 0);
  });
});

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
      for (const name of ['Share', 'Readme', 'Keys and terms']) {
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
    });
  }
});

describe('axe-core finds no serious fault', () => {
  for (const [screen, colorScheme, width] of [
    ['phone', 'dark', 390],
    ['desk', 'light', 1440],
  ] as const) {
    it(`on a ${screen}: a wrong address, the menu, a recording, other environments`, async () => {
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
