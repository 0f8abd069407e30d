import type { Browser } from 'playwright-core';
import { launchChromium } from './chromium.ts';
import { type ServeProcess, type ServeSetup, startServe } from './serve-process.ts';

/** Starts a server and a browser. Where one of them fails, the other does not stay behind and keep the test alive. */
export async function startBoth(setup?: ServeSetup): Promise<[browser: Browser, server: ServeProcess]> {
  const [browser, server] = await Promise.allSettled([launchChromium(), startServe(setup)]);
  if (browser.status === 'fulfilled' && server.status === 'fulfilled') return [browser.value, server.value];
  if (browser.status === 'fulfilled') await browser.value.close();
  if (server.status === 'fulfilled') await server.value.kill();
  throw browser.status === 'rejected' ? browser.reason : (server as PromiseRejectedResult).reason;
}
