// `node packages/console/scripts/pictures.ts [name ...]`: takes the pictures of the README and the docs, or those named,
// into docs/images, in the Chromium that SERVEGYM_CHROMIUM names, with the console's build; `console.webp`, the 20 seconds of
// the README, needs img2webp (package `webp` of Debian and Homebrew).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions } from 'playwright-core';
import { launchChromium } from '../../../maintenance/test-servers/chromium.ts';
import { runServegym, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { type ConsolePage, openConsole } from '../browser/console-page.ts';

async function step(shown: ConsolePage, window: number): Promise<void> {
  await shown.untilWindow(window - 1);
  await shown.button('Step').click();
  await shown.untilWindow(window);
}

const DOCS = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
const FONT = fileURLToPath(
  import.meta.resolve('@fontsource-variable/inter/files/inter-latin-wght-normal.woff2'),
);
const RECORDING = 'console.webp';
const REPORT = 'tune.png';
const EPISODE = '/web/?task=adversarial_multitenant&seed=4';
const FLEET = '/fleet/web/?task=flash_crowds&seed=3';
/** Windows of the episode. */
const WINDOWS = 120;
/** Window of the recording from which on a planner plays beside the rules. */
const JOINED_AT = 48;
const WINDOW_MS = 125;
const START_MS = 1500;
const END_MS = 3500;
/** Quality of the lossy frames, 0 to 100. */
const QUALITY = '55';

type DocsPicture = readonly [
  name: string,
  path: string,
  policies: readonly string[],
  window: number,
  options: BrowserContextOptions,
];

const desk = (height: number, colorScheme: 'dark' | 'light') => ({
  viewport: { width: 1440, height },
  colorScheme,
});
const DOCS_PICTURES: readonly DocsPicture[] = [
  ['console-light.png', EPISODE, ['mpc'], 100, desk(1060, 'light')],
  [
    'console-comparison.png',
    EPISODE,
    ['mpc', 'static-tuned', 'heuristic', 'default'],
    WINDOWS,
    desk(1060, 'dark'),
  ],
  ['console-fleet.png', FLEET, ['hpa'], 90, desk(900, 'dark')],
];

/**
 * Opens a page on which nothing plays by itself, in Inter, the first of the fonts that it asks for, as on a machine that
 * has it. The page itself brings no font along.
 */
async function openInInter(path: string, policies: readonly string[], options: BrowserContextOptions) {
  const players = policies.map((policy) => `&policy=${policy}`).join('');
  const still = { reducedMotion: 'reduce', bypassCSP: true, ...options } as const;
  const shown = await openConsole(browser, `${server.url}${path}${players}`, still);
  const source = readFileSync(FONT).toString('base64');
  await shown.page.addStyleTag({
    content: `@font-face { font-family: Inter; font-weight: 100 900; src: url(data:font/woff2;base64,${source}) }`,
  });
  await shown.page.evaluate(() => document.fonts.load('14px Inter'));
  await shown.untilWindow(0);
  return shown;
}

async function takePicture([name, path, policies, at, options]: DocsPicture): Promise<void> {
  const shown = await openInInter(path, policies, options);
  for (let window = 1; window <= at; window++) await step(shown, window);
  if (at === WINDOWS) await shown.score.waitFor();
  await shown.page.mouse.move(0, 0);
  await shown.page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await shown.page.evaluate(() => new Promise((drawn) => setTimeout(drawn, 300)));
  const png = await shown.page.screenshot({ path: join(DOCS, name) });
  shown.assertNoFaults();
  await shown.close();
  console.log(`${name}  ${(png.length / 1000).toFixed(0)} kB`);
}

/** A picture is taken after each window, so that the recording runs evenly however slow the machine is. */
async function record(folder: string): Promise<void> {
  const viewport = { width: 1280, height: 800 };
  const look = { viewport, deviceScaleFactor: 0.75, colorScheme: 'dark' } as const;
  const shown = await openInInter(EPISODE, ['heuristic'], look);
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
    await step(shown, window);
    await take(WINDOW_MS);
  }
  for (const card of await shown.view.getByRole('article').all())
    await card.getByText('Score', { exact: true }).waitFor();
  await shown.score.waitFor();
  await shown.untilIdle();
  await take(END_MS);
  shown.assertNoFaults();
  const file = join(DOCS, RECORDING);
  execFileSync('img2webp', ['-loop', '0', '-mixed', '-q', QUALITY, '-m', '6', ...frames, '-o', file]);
  console.log(`${RECORDING}: ${frames.length / 3} frames, ${(statSync(file).size / 1e6).toFixed(2)} MB`);
}

/** Page of a `tune`, with the command of docs/tune.md. */
async function takeReport(folder: string): Promise<void> {
  const file = join(folder, 'tune.html');
  const profiles = ['a100-40gb-llama-3-8b', 'h100-80gb-llama-3-8b'].flatMap((name) => ['--profile', name]);
  const { code, stderr } = await runServegym('tune', 'chat@5/s', ...profiles, '--report', file);
  if (code !== 0) throw new Error(stderr);
  const page = await browser.newPage({ viewport: { width: 1000, height: 1320 }, colorScheme: 'light' });
  await page.goto(`file://${file}`);
  await page.screenshot({ path: join(DOCS, REPORT) });
  await page.close();
}

const chosen = process.argv.slice(2);
const isChosen = (name: string) => chosen.length === 0 || chosen.includes(name);
const folder = mkdtempSync(join(tmpdir(), 'servegym-recording-'));
const server = await startServe('--env', 'llmserve,fleet');
const browser = await launchChromium();
try {
  for (const picture of DOCS_PICTURES) if (isChosen(picture[0])) await takePicture(picture);
  if (isChosen(REPORT)) await takeReport(folder);
  if (isChosen(RECORDING)) await record(folder);
} finally {
  rmSync(folder, { recursive: true });
  await browser.close();
  await server.stop('SIGKILL');
}
