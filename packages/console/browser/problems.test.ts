import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { BrowserContextOptions } from 'playwright-core';
import { ConsolePage } from './console-page.ts';
import { openPage, type ReverseProxy, serveForTest, startBoth, startReverseProxy } from './start.ts';

const { browser, server } = await startBoth();
let proxy: ReverseProxy;

beforeEach(async () => {
  proxy = await startReverseProxy(server.url);
});
afterEach(() => proxy.close());

/** Opens a page on which requests may fail, which the browser itself logs. */
async function open(
  query: string,
  url = proxy.url,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const page = await openPage(browser, `${url}/web/${query}`, options);
  page.expected = /^error: Failed to load resource/;
  return page;
}

describe('when the connection breaks in mid-episode', () => {
  it('the page says so, and goes on by itself where it was once it is back', async () => {
    const page = await open('?policy=heuristic&seed=4');
    await page.untilWindow(3);
    proxy.mode = 'cut';
    await page.problem.waitFor();
    assert.match((await page.problem.textContent()) ?? '', /does not answer/);
    const reached = await page.window();
    proxy.mode = 'pass';
    const resets = proxy.passed.filter(({ path }) => path === '/reset').length;
    await page.untilWindow(reached + 2);
    assert.equal(await page.problem.count(), 0);
    assert.equal(
      proxy.passed.filter(({ path }) => path === '/reset').length,
      resets,
      'the episode was not started again',
    );
  });
});

describe('when the server refuses', () => {
  it('the page gives its reason and offers a fresh start', async () => {
    const page = await open('?policy=hand');
    await page.untilWindow(0);
    proxy.mode = { refuse: 400, detail: 'Something else is wrong.' };
    await page.button('Step').click();
    await page.problem.waitFor();
    assert.match((await page.problem.textContent()) ?? '', /Something else is wrong\./);
    proxy.mode = 'pass';
    await page.button('Start the episode again').click();
    await page.problem.waitFor({ state: 'detached' });
    await page.button('Step').click();
    await page.untilWindow(1);
  });

  it('the page waits out a rate limit without losing the episode', async () => {
    const page = await open('?policy=hand');
    await page.untilWindow(0);
    await page.step();
    proxy.mode = { refuse: 429, detail: 'Too many requests.' };
    await page.button('Step').click();
    await page.problem.waitFor();
    assert.match((await page.problem.textContent()) ?? '', /Too many requests.*tries again by itself/);
    await page.button('Try now').click();
    proxy.mode = 'pass';
    await page.problem.waitFor({ state: 'detached' });
    await page.step();
    assert.equal(await page.window(), 2);
    assert.equal(await page.problem.count(), 0);
  });

  it('an action that it does not take is told field by field', async () => {
    const page = await open('?policy=hand');
    await page.untilWindow(0);
    await page.page.route('**/step', (route) => {
      const body = route.request().postDataJSON();
      return route.continue({
        postData: JSON.stringify({ ...body, action: { ...body.action, batch_cap: 9999 } }),
      });
    });
    await page.button('Step').click();
    await page.problem.waitFor();
    assert.match((await page.problem.textContent()) ?? '', /batch_cap/);
  });
});

describe('when the server is down at first', () => {
  it('the page can connect later', async () => {
    const page = await open('', proxy.url, { serviceWorkers: 'block' });
    await page.untilWindow(0);
    await page.page.route('**/metadata', (route) => route.abort());
    await page.page.reload();
    await page.problem.waitFor();
    await page.page.unroute('**/metadata');
    await page.button('Connect again').click();
    await page.untilWindow(1);
  });
});

describe('when the server process is killed in mid-episode and another takes its place', () => {
  for (const [what, keeps] of [
    ['the page goes on in its session, which the server has kept', true],
    ['the page rebuilds its session, which the server has forgotten', false],
  ] as const) {
    it(`${what}, bit for bit`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'servegym-'));
      t.after(() => rmSync(folder, { recursive: true }));
      const variables = { SERVEGYM_STORE: keeps ? join(folder, 'sessions.db') : 'memory' };
      const episode = '?policy=random&seed=5&task=static_workload';
      const first = await serveForTest([], variables);
      const page = await open(episode, first.url);
      await page.untilWindow(4);
      await first.stop('SIGKILL');
      await page.problem.waitFor();
      const reached = await page.window();
      const second = await serveForTest(['--port', new URL(first.url).port], variables);
      await page.problem.waitFor({ state: 'detached' });
      await page.untilWindow(reached + 1);
      await page.untilOver();

      const whole = await open(episode, second.url);
      await whole.untilOver();
      assert.equal(await page.totals(), await whole.totals());
    });
  }
});

describe('when the server wants a token', () => {
  it('the page asks for it, keeps it for its tab, and says when it is wrong', async () => {
    const guarded = await serveForTest([], { SERVEGYM_TOKEN: 'open-sesame' });
    const page = await open('?policy=heuristic', guarded.url);
    const field = page.panel('Token').getByLabel('Token', { exact: true });
    await field.fill('wrong');
    const refused = page.page.waitForResponse((response) => response.status() === 401);
    await page.button('Enter').click();
    await refused;
    await field.fill('open-sesame');
    await page.button('Enter').click();
    await page.untilWindow(1);
    await page.page.reload();
    await page.untilWindow(1);
    assert.equal(await page.panel('Token').count(), 0);
  });
});

describe('several tabs at once', () => {
  it('play each their own episode', async () => {
    const context = await browser.newContext();
    const tabs = await Promise.all([context.newPage(), context.newPage()]);
    const [first, second] = tabs.map((tab) => new ConsolePage(tab, tab, []));
    await Promise.all(
      tabs.map((tab, i) => tab.goto(`${server.url}/web/?policy=hand&task=static_workload&seed=${i + 1}`)),
    );
    await Promise.all([first.untilWindow(0), second.untilWindow(0)]);
    for (let i = 0; i < 3; i++) await first.step();
    await second.step();
    assert.deepEqual([await first.window(), await second.window()], [3, 1]);
    await context.close();
  });
});
