import { type Browser, chromium } from 'playwright-core';

/** Starts the Chromium that `SERVEGYM_CHROMIUM` names. */
export function launchChromium(): Promise<Browser> {
  const executablePath = process.env.SERVEGYM_CHROMIUM;
  if (!executablePath) {
    throw new Error('Expected the path of a Chromium in SERVEGYM_CHROMIUM; `npm test` finds one and sets it');
  }
  return chromium.launch({ executablePath });
}
