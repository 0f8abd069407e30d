// `node packages/console/scripts/screenshots.ts [name.png ...]`: takes the pictures of the README and the docs, or those
// named, into docs/images, in the Chromium that SERVEGYM_CHROMIUM names. Needs the console's build.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions } from 'playwright-core';
import { startServe } from '../../../maintenance/test-servers/servegym.ts';
import { launchChromium, openConsole } from '../browser/console-page.ts';
import { setInInter } from './inter.ts';

const FOLDER = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
const CROWD = 60;
const EPISODE = '/web/?task=adversarial_multitenant&seed=4';

/** A picture is taken at the first window from `from` on with a crowded queue, and at `to` at the latest. */
interface Picture {
  readonly name: string;
  /** Path and scenario of the page. Default `EPISODE`. */
  readonly page?: string;
  readonly policies: readonly string[];
  readonly from: number;
  readonly to: number;
  readonly options: BrowserContextOptions;
}

const desktop = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };
const PICTURES: readonly Picture[] = [
  {
    name: 'console.png',
    policies: ['heuristic'],
    from: 20,
    to: 112,
    options: { viewport: desktop, colorScheme: 'dark' },
  },
  {
    name: 'console-light.png',
    policies: ['mpc'],
    from: 100,
    to: 100,
    options: { viewport: { width: 1440, height: 1060 }, colorScheme: 'light' },
  },
  {
    name: 'console-comparison.png',
    policies: ['mpc', 'static-tuned', 'heuristic', 'default'],
    from: 120,
    to: 120,
    options: { viewport: { width: 1440, height: 1060 }, colorScheme: 'dark' },
  },
  {
    name: 'console-phone.png',
    policies: ['heuristic'],
    from: 20,
    to: 60,
    options: { viewport: phone, colorScheme: 'dark', deviceScaleFactor: 2, hasTouch: true },
  },
  {
    name: 'console-fleet.png',
    page: '/fleet/web/?task=flash_crowds&seed=3',
    policies: ['hpa'],
    from: 90,
    to: 90,
    options: { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' },
  },
];

const chosen = process.argv.slice(2);
mkdirSync(FOLDER, { recursive: true });
const server = await startServe();
const browser = await launchChromium();
try {
  for (const { name, page = EPISODE, policies, from, to, options } of PICTURES) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const players = policies.map((policy) => `&policy=${policy}`).join('');
    const shown = await openConsole(browser, `${server.url}${page}${players}`, {
      ...options,
      reducedMotion: 'reduce',
      bypassCSP: true,
    });
    await setInInter(shown.page);
    await shown.untilWindow(0);
    for (let window = 0; window < to; window++) {
      if (window >= from && (await shown.figure('In the queue')) >= CROWD) break;
      await shown.button('Step').click();
      await shown.untilWindow(window + 1);
    }
    if (to === 120) await shown.score.waitFor();
    await shown.page.mouse.move(0, 0);
    await shown.page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await shown.page.evaluate(() => new Promise((drawn) => setTimeout(drawn, 300)));
    const png = await shown.page.screenshot({ path: join(FOLDER, name) });
    shown.assertNoFaults();
    await shown.close();
    console.log(`${name}  ${(png.length / 1000).toFixed(0)} kB`);
  }
} finally {
  await browser.close();
  await server.stop('SIGKILL');
}
