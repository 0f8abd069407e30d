// `node packages/console/scripts/record.ts`: makes the 20 seconds of the README, docs/images/console.webp, in the Chromium
// that SERVEGYM_CHROMIUM names. Needs the console's build, and img2webp (package `webp` of Debian and Homebrew). A picture
// is taken after each window, so that the recording runs evenly however slow the machine is.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServe } from '../../../maintenance/test-servers/servegym.ts';
import { launchChromium, openConsole } from '../browser/console-page.ts';
import { setInInter } from './inter.ts';

const FILE = fileURLToPath(new URL('../../../docs/images/console.webp', import.meta.url));
const EPISODE = '/web/?task=adversarial_multitenant&seed=4&policy=heuristic';
/** Windows of the episode. */
const WINDOWS = 120;
/** Window from which on a planner plays beside the rules. */
const JOINED_AT = 48;
const WINDOW_MS = 125;
const START_MS = 1500;
const END_MS = 3500;
/** Quality of the lossy frames, 0 to 100. */
const QUALITY = '55';

const folder = mkdtempSync(join(tmpdir(), 'servegym-recording-'));
const server = await startServe('--env', 'llmserve');
const browser = await launchChromium();
try {
  const shown = await openConsole(browser, `${server.url}${EPISODE}`, {
    ...{ viewport: { width: 1280, height: 800 }, deviceScaleFactor: 0.75, colorScheme: 'dark' },
    ...{ reducedMotion: 'reduce', bypassCSP: true },
  });
  await setInInter(shown.page);
  await shown.untilWindow(0);
  const frames: string[] = [];
  const take = async (ms: number) => {
    const file = join(folder, `${frames.length}.png`);
    await shown.page.evaluate(() => new Promise((drawn) => requestAnimationFrame(drawn)));
    await shown.page.screenshot({ path: file });
    frames.push('-d', String(ms), file);
  };
  await take(START_MS);
  for (let window = 1; window <= WINDOWS; window++) {
    if (window === JOINED_AT) {
      await shown.choice('Compare with').selectOption('mpc');
      await shown.view.getByRole('article').nth(1).waitFor();
      await shown.view.locator('.joining').waitFor({ state: 'detached' });
    }
    await shown.button('Step').click();
    await shown.untilWindow(window);
    await take(WINDOW_MS);
  }
  for (const card of await shown.view.getByRole('article').all())
    await card.getByText('Score', { exact: true }).waitFor();
  await shown.score.waitFor();
  await shown.untilIdle();
  await take(END_MS);
  shown.assertNoFaults();
  execFileSync('img2webp', ['-loop', '0', '-mixed', '-q', QUALITY, '-m', '6', ...frames, '-o', FILE]);
  console.log(`${FILE}: ${frames.length / 3} frames, ${(statSync(FILE).size / 1e6).toFixed(2)} MB`);
} finally {
  await browser.close();
  await server.stop('SIGKILL');
  rmSync(folder, { recursive: true });
}
