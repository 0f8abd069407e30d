import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchChromium } from './chromium.ts';
import { type ConsolePage, openConsole } from './console-page.ts';
import { type ReverseProxy, startReverseProxy } from './reverse-proxy.ts';
import { type ServeProcess, startServe } from './serve-process.ts';

let browser: Browser;
let server: ServeProcess;
let proxy: ReverseProxy;

before(async () => {
  [browser, server] = await Promise.all([launchChromium(), startServe()]);
});
after(async () => {
  await browser?.close();
  await server?.kill();
});
beforeEach(async () => {
  proxy = await startReverseProxy(server.origin);
});
afterEach(() => proxy.close());

function open(query = ''): Promise<ConsolePage> {
  return openConsole(browser, `${proxy.url}/web/${query}`);
}

/** The browser itself logs requests that fail; nothing else may be wrong. */
function assertOnlyFailedRequests({ faults }: ConsolePage): void {
  assert.deepEqual(
    faults.filter((fault) => !fault.startsWith('error: Failed to load resource')),
    [],
  );
}

describe('when the connection breaks in mid-episode', () => {
  it('the page says so, and goes on where it was once it is back', async () => {
    const page = await open('?policy=heuristic&seed=4');
    await page.untilWindow(3);
    proxy.mode = 'cut';
    await page.problem.waitFor();
    assert.match((await page.problem.textContent()) ?? '', /does not answer/);
    const reached = await page.window();
    proxy.mode = 'pass';
    const resets = proxy.passed.filter(({ path }) => path === '/reset').length;
    await page.button('Try again').click();
    await page.untilWindow(reached + 2);
    assert.equal(await page.problem.count(), 0);
    assert.equal(
      proxy.passed.filter(({ path }) => path === '/reset').length,
      resets,
      'the episode was not started again',
    );
    assertOnlyFailedRequests(page);
    await page.close();
  });
});

describe('when the server refuses', () => {
  it('the page gives its reason and offers a fresh start', async () => {
    const page = await open('?policy=hand');
    await page.untilWindow(0);
    proxy.mode = { refuse: 404, detail: 'There is no such session.' };
    await page.button('Step').click();
    await page.problem.waitFor();
    assert.match((await page.problem.textContent()) ?? '', /There is no such session\./);
    proxy.mode = 'pass';
    await page.button('Start the episode again').click();
    await page.problem.waitFor({ state: 'detached' });
    await page.button('Step').click();
    await page.untilWindow(1);
    assertOnlyFailedRequests(page);
    await page.close();
  });

  it('the page waits out a rate limit without losing the episode', async () => {
    const page = await open('?policy=hand');
    await page.untilWindow(0);
    await page.button('Step').click();
    await page.untilWindow(1);
    proxy.mode = { refuse: 429, detail: 'Too many requests.' };
    await page.button('Step').click();
    await page.problem.waitFor();
    proxy.mode = 'pass';
    await page.button('Try again').click();
    await page.untilWindow(2);
    assert.equal(await page.problem.count(), 0);
    assertOnlyFailedRequests(page);
    await page.close();
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
    assertOnlyFailedRequests(page);
    await page.close();
  });
});

describe('when the server is down at first', () => {
  it('the page can connect later', async () => {
    const page = await openConsole(browser, `${proxy.url}/web/`, { serviceWorkers: 'block' });
    await page.untilWindow(0);
    await page.page.route('**/metadata', (route) => route.abort());
    await page.page.reload();
    await page.problem.waitFor();
    await page.page.unroute('**/metadata');
    await page.button('Connect again').click();
    await page.untilWindow(1);
    assertOnlyFailedRequests(page);
    await page.close();
  });
});

describe('when the server process dies and another takes its place', () => {
  it('the page leads back to a playing episode', async () => {
    const mortal = await startServe();
    const page = await openConsole(browser, `${mortal.origin}/web/?policy=heuristic`);
    let heir: ServeProcess | undefined;
    try {
      await page.untilWindow(2);
      await mortal.kill();
      await page.problem.waitFor();
      heir = await startServe(mortal.port);
      await page.button('Try again').click();
      await page.button('Start the episode again').click();
      await page.problem.waitFor({ state: 'detached' });
      await page.untilWindow(2);
      assertOnlyFailedRequests(page);
    } finally {
      await page.close();
      await mortal.kill();
      await heir?.kill();
    }
  });
});
