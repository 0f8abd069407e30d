import { after, afterEach } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { type ServeProcess, startServe, startServeWith } from '../../../maintenance/test-servers/servegym.ts';
import { type ConsolePage, launchChromium, openConsole } from './console-page.ts';

/** Closes what the test that runs has opened. */
const closings: (() => unknown)[] = [];
afterEach(async () => {
  const failures: unknown[] = [];
  // The last first: pages before the servers that they are of.
  for (const close of closings.splice(0).reverse()) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
});

/** Calls `close` after the test that runs. */
export function closeAfterTest(close: () => unknown): void {
  closings.push(close);
}

/** Opens a page for the test that runs. At its end the page must have no faults. */
export async function openPage(
  browser: Browser,
  url: string,
  options?: BrowserContextOptions,
): Promise<ConsolePage> {
  const page = await openConsole(browser, url, options);
  closeAfterTest(() => page.close());
  closeAfterTest(() => page.assertNoFaults());
  return page;
}

/** Starts `servegym serve` for the test that runs. */
export async function serveForTest(
  args: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<ServeProcess> {
  const server = await startServeWith({ SERVEGYM_STORE: 'memory', ...variables }, ...args);
  closeAfterTest(() => server.stop('SIGKILL'));
  return server;
}

/** Starts a browser and `servegym serve`, for all tests of the file that calls it. */
export async function startBoth(...args: string[]): Promise<{ browser: Browser; server: ServeProcess }> {
  const [browser, server] = await Promise.allSettled([launchChromium(), startServe(...args)]);
  const end = async () => {
    if (browser.status === 'fulfilled') await browser.value.close();
    if (server.status === 'fulfilled') await server.value.stop('SIGKILL');
  };
  if (browser.status === 'fulfilled' && server.status === 'fulfilled') {
    after(end);
    return { browser: browser.value, server: server.value };
  }
  await end();
  throw browser.status === 'rejected' ? browser.reason : (server as PromiseRejectedResult).reason;
}
