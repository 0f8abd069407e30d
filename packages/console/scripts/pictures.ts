// `node packages/console/scripts/pictures.ts docs [name ...]`: takes the pictures of the README and the docs, or those named,
// into docs/images; `console.webp`, the 20 seconds of the README, needs img2webp (package `webp` of Debian and Homebrew).
// `node packages/console/scripts/pictures.ts FOLDER [name ...]`: takes a picture of every page of the console, or of those
// named, in both themes on a desk and on a phone, to be looked at. Says what axe-core calls serious, and what is wider than
// the screen. Both in the Chromium that SERVEGYM_CHROMIUM names, with the console's build.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions } from 'playwright-core';
import { launchChromium } from '../../../maintenance/test-servers/chromium.ts';
import { startServe } from '../../../maintenance/test-servers/servegym.ts';
import { assertAccessible, type ConsolePage, openConsole } from '../browser/console-page.ts';

const GUESS = fileURLToPath(new URL('../../openenv/examples/guess/environment.ts', import.meta.url));
const SCREENS = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } } as const;
const STATIC = '/web/?task=static_workload&seed=1';
const CROWDS = '/fleet/web/?task=flash_crowds&seed=3';
const PLANNED_GPUS = ['A100-40GB', 'L40S-48GB', 'H100-80GB'];

interface ReviewedPage {
  readonly name: string;
  readonly path: string;
  /** Brings the page into the state of the picture. */
  show(page: ConsolePage): Promise<unknown>;
}

async function playTo(page: ConsolePage, window: number): Promise<void> {
  await page.untilWindow(0);
  await page.choice('Speed').selectOption('60');
  await page.button('Play').click();
  await page.untilWindow(window);
  await page.button('Pause').click();
}

/** Opens a panel at the end of an episode of the easy task. */
function panel(name: string): ReviewedPage {
  const show = async (page: ConsolePage) => {
    await page.untilOver();
    const opened = await page.open(name);
    await opened.locator('p, section, li').first().waitFor();
    await page.untilIdle();
  };
  return {
    name: `panel-${name.toLowerCase().replaceAll(' ', '-')}`,
    path: `${STATIC}&policy=heuristic`,
    show,
  };
}

/** A page with the guided tour that a first visit starts. */
function firstVisit(name: string, path: string): ReviewedPage {
  return { name, path, show: (page) => page.view.locator('.tour').waitFor() };
}

function played(name: string, path: string, window: number): ReviewedPage {
  return { name, path, show: (page) => playTo(page, window) };
}

function over(name: string, path: string): ReviewedPage {
  return { name, path, show: (page) => page.untilOver() };
}

/** A page that is played to a window, with all its charts. */
function charts(name: string, path: string, window: number): ReviewedPage {
  const show = async (page: ConsolePage) => {
    await playTo(page, window);
    await page.view.getByText('More charts').click();
  };
  return { name, path, show };
}

async function showMenu(page: ConsolePage): Promise<void> {
  await page.untilWindow(0);
  await page.view.locator('.options-menu summary').click();
  await page.choice('Shift').waitFor();
}

async function showPlans(page: ConsolePage): Promise<void> {
  await page.view.getByText('GPUs: all').click();
  for (const box of await page.view.locator('.gpu-choices label').all())
    if (!PLANNED_GPUS.includes((await box.textContent()) ?? '')) await box.getByRole('checkbox').uncheck();
  await page.button('Plan').click();
  await page.view.getByText(/^Cheapest: /).waitFor();
}

const PAGES: readonly ReviewedPage[] = [
  firstVisit('llmserve-first-visit', '/web/'),
  played('llmserve', '/web/?task=adversarial_multitenant&seed=7&policy=heuristic', 60),
  {
    name: 'llmserve-by-hand',
    path: '/web/?task=bursty_workload&seed=7&policy=hand',
    show: (page) => step(page, 1),
  },
  over('llmserve-over', `${STATIC}&policy=heuristic`),
  over('llmserve-comparison', `${STATIC}&policy=heuristic&policy=default&policy=static-tuned`),
  charts('llmserve-charts', '/web/?task=bursty_workload&seed=1&policy=heuristic', 40),
  { name: 'llmserve-menu', path: `${STATIC}&policy=hand`, show: showMenu },
  {
    name: 'llmserve-wrong-address',
    path: '/web/?task=nope&policy=heuristic',
    show: (page) => page.problem.waitFor(),
  },
  ...['Runs', 'Share', 'Developers', 'Readme', 'Keys and terms'].map(panel),
  firstVisit('fleet-first-visit', '/fleet/web/'),
  played('fleet', `${CROWDS}&policy=hpa`, 90),
  charts('fleet-charts', `${CROWDS}&policy=keda`, 60),
  over('fleet-over', '/fleet/web/?task=diurnal&seed=3&policy=hpa'),
  over('fleet-comparison', `${CROWDS}&policy=hpa&policy=rule&policy=keda`),
  played('inferencegym', '/inferencegym/web/?task=3&seed=1&policy=baseline', 60),
  over('inferencegym-over', '/inferencegym/web/?task=1&seed=1&policy=baseline'),
  { name: 'benchmark', path: '/benchmark/web/?policy=hand', show: (page) => step(page, 1) },
  { name: 'own', path: '/guess/web/?policy=hand&seed=41', show: (page) => step(page, 1) },
  over('own-over', '/guess/web/?policy=random&seed=3'),
  { name: 'plan', path: '/plan/', show: (page) => page.view.getByText('GPUs: all').waitFor() },
  { name: 'plan-answer', path: '/plan/', show: showPlans },
];

/** Opens a page on which nothing plays by itself, unless `options` say so. */
function openStill(path: string, options: BrowserContextOptions): Promise<ConsolePage> {
  return openConsole(browser, `${server.url}${path}`, {
    reducedMotion: 'reduce',
    bypassCSP: true,
    ...options,
  });
}

async function step(shown: ConsolePage, window: number): Promise<void> {
  await shown.untilWindow(window - 1);
  await shown.button('Step').click();
  await shown.untilWindow(window);
}

async function reviewPage({ name, path, show }: ReviewedPage): Promise<void> {
  // Only the guided first visit is to play.
  const page = await openStill(path, {
    viewport: SCREENS.desk,
    ...(name.endsWith('first-visit') && { reducedMotion: 'no-preference' }),
  });
  await show(page);
  for (const [screen, viewport] of Object.entries(SCREENS)) {
    await page.page.setViewportSize(viewport);
    // Charts are drawn only on the screen, which therefore is as high as the page.
    const height = await page.page.evaluate(() => document.documentElement.scrollHeight);
    await page.page.setViewportSize({ width: viewport.width, height });
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.page.emulateMedia({ colorScheme });
      const file = `${name}-${screen}-${colorScheme}.png`;
      await page.page.waitForTimeout(300);
      await page.page.screenshot({ path: join(folder, file) });
      console.log(file);
      await assertAccessible(page, name).catch((error: Error) => console.log(error.message));
    }
    const overflow = await page.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (overflow > 0) console.log(`${name} is ${overflow} px wider than a ${screen}`);
  }
  for (const fault of page.faults) console.log(fault);
  await page.close();
}

const DOCS = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
const FONT = fileURLToPath(
  import.meta.resolve('@fontsource-variable/inter/files/inter-latin-wght-normal.woff2'),
);
const RECORDING = 'console.webp';
const CROWD = 60;
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
  from: number,
  to: number,
  options: BrowserContextOptions,
];

const desk = (height: number, colorScheme: 'dark' | 'light') => ({
  viewport: { width: 1440, height },
  colorScheme,
});
const PHONE = {
  viewport: SCREENS.phone,
  colorScheme: 'dark',
  deviceScaleFactor: 2,
  hasTouch: true,
} as const;
/** A picture is taken at the first window from `from` on with a crowded queue, and at `to` at the latest. */
const DOCS_PICTURES: readonly DocsPicture[] = [
  ['console.png', EPISODE, ['heuristic'], 20, 112, desk(900, 'dark')],
  ['console-light.png', EPISODE, ['mpc'], 100, 100, desk(1060, 'light')],
  [
    'console-comparison.png',
    EPISODE,
    ['mpc', 'static-tuned', 'heuristic', 'default'],
    WINDOWS,
    WINDOWS,
    desk(1060, 'dark'),
  ],
  ['console-phone.png', EPISODE, ['heuristic'], 20, 60, PHONE],
  ['console-fleet.png', FLEET, ['hpa'], 90, 90, desk(900, 'dark')],
];

/**
 * Opens a page in Inter, the first of the fonts that it asks for, as on a machine that has it. The page itself brings no
 * font along.
 */
async function openInInter(path: string, policies: readonly string[], options: BrowserContextOptions) {
  const players = policies.map((policy) => `&policy=${policy}`).join('');
  const shown = await openStill(`${path}${players}`, options);
  const source = readFileSync(FONT).toString('base64');
  await shown.page.addStyleTag({
    content: `@font-face { font-family: Inter; font-weight: 100 900; src: url(data:font/woff2;base64,${source}) }`,
  });
  await shown.page.evaluate(() => document.fonts.load('14px Inter'));
  await shown.untilWindow(0);
  return shown;
}

async function takePicture([name, path, policies, from, to, options]: DocsPicture): Promise<void> {
  const shown = await openInInter(path, policies, options);
  for (let window = 0; window < to; window++) {
    if (window >= from && (await shown.figure('In the queue')) >= CROWD) break;
    await step(shown, window + 1);
  }
  if (to === WINDOWS) await shown.score.waitFor();
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

const [target, ...chosen] = process.argv.slice(2);
if (target === undefined)
  throw new Error('Expected `docs`, or the folder for the pictures, as the first argument');
const folder = target === 'docs' ? mkdtempSync(join(tmpdir(), 'servegym-recording-')) : target;
const isChosen = (name: string) => chosen.length === 0 || chosen.includes(name);
mkdirSync(folder, { recursive: true });
const server = await startServe('--env', `llmserve,fleet,inferencegym,benchmark,${GUESS}`);
const browser = await launchChromium();
try {
  if (target === 'docs') {
    for (const picture of DOCS_PICTURES) if (isChosen(picture[0])) await takePicture(picture);
    if (isChosen(RECORDING)) await record(folder);
    rmSync(folder, { recursive: true });
  } else for (const page of PAGES) if (isChosen(page.name)) await reviewPage(page);
} finally {
  await browser.close();
  await server.stop('SIGKILL');
}
