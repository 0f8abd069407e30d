import { after } from 'node:test';
import { type Browser, chromium } from 'playwright-core';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';

/** Starts the Chromium that `SERVEGYM_CHROMIUM` names. */
export function launchChromium(): Promise<Browser> {
  const executablePath = process.env.SERVEGYM_CHROMIUM;
  if (!executablePath) {
    throw new Error('Expected the path of a Chromium in SERVEGYM_CHROMIUM; `npm test` finds one and sets it');
  }
  return chromium.launch({ executablePath });
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
