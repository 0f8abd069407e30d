// `node packages/console/scripts/review-pages.ts FOLDER [name ...]`: takes a picture of every page of the console, or of
// those named, in both themes on a desk and on a phone, to be looked at. Says what axe-core calls serious, and what is
// wider than the screen. In the Chromium that SERVEGYM_CHROMIUM names. Needs the console's build.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServe } from '../../../maintenance/test-servers/servegym.ts';
import { assertAccessible, type ConsolePage, launchChromium, openConsole } from '../browser/console-page.ts';

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

async function playOne(page: ConsolePage): Promise<void> {
  await page.untilWindow(0);
  await page.button('Step').click();
  await page.untilWindow(1);
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
  await page.button('Example trace').click();
  await page.view.getByText('GPUs: all').click();
  for (const box of await page.view.locator('.gpu-choices label').all())
    if (!PLANNED_GPUS.includes((await box.textContent()) ?? '')) await box.getByRole('checkbox').uncheck();
  await page.button('Plan').click();
  await page.view.getByText(/^Cheapest: /).waitFor();
}

const PAGES: readonly ReviewedPage[] = [
  firstVisit('llmserve-first-visit', '/web/'),
  played('llmserve', '/web/?task=adversarial_multitenant&seed=7&policy=heuristic', 60),
  { name: 'llmserve-by-hand', path: '/web/?task=bursty_workload&seed=7&policy=hand', show: playOne },
  over('llmserve-over', `${STATIC}&policy=heuristic`),
  over('llmserve-comparison', `${STATIC}&policy=heuristic&policy=default&policy=static-tuned`),
  charts('llmserve-charts', '/web/?task=bursty_workload&seed=1&policy=heuristic', 40),
  { name: 'llmserve-menu', path: `${STATIC}&policy=hand`, show: showMenu },
  {
    name: 'llmserve-wrong-address',
    path: '/web/?task=nope&policy=heuristic',
    show: (page) => page.problem.waitFor(),
  },
  ...['Runs', 'Share', 'Leaderboard', 'Developers', 'Readme', 'Keys and terms'].map(panel),
  firstVisit('fleet-first-visit', '/fleet/web/'),
  played('fleet', `${CROWDS}&policy=hpa`, 90),
  charts('fleet-charts', `${CROWDS}&policy=keda`, 60),
  over('fleet-over', '/fleet/web/?task=diurnal&seed=3&policy=hpa'),
  over('fleet-comparison', `${CROWDS}&policy=hpa&policy=rule&policy=keda`),
  played('inferencegym', '/inferencegym/web/?task=3&seed=1&policy=baseline', 60),
  over('inferencegym-over', '/inferencegym/web/?task=1&seed=1&policy=baseline'),
  { name: 'benchmark', path: '/benchmark/web/?policy=hand', show: playOne },
  { name: 'own', path: '/guess/web/?policy=hand&seed=41', show: playOne },
  over('own-over', '/guess/web/?policy=random&seed=3'),
  { name: 'plan', path: '/plan/', show: (page) => page.view.getByText('GPUs: all').waitFor() },
  { name: 'plan-answer', path: '/plan/', show: showPlans },
];

const [folder, ...chosen] = process.argv.slice(2);
if (folder === undefined) throw new Error('Expected the folder for the pictures as the first argument');
mkdirSync(folder, { recursive: true });
const server = await startServe('--env', `llmserve,fleet,inferencegym,benchmark,${GUESS}`);
const browser = await launchChromium();
try {
  for (const { name, path, show } of PAGES) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    // Where motion is reduced nothing plays by itself; only the guided first visit is to play.
    const reducedMotion = name.endsWith('first-visit') ? 'no-preference' : 'reduce';
    const page = await openConsole(browser, `${server.url}${path}`, {
      viewport: SCREENS.desk,
      reducedMotion,
      bypassCSP: true,
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
} finally {
  await browser.close();
  await server.stop('SIGKILL');
}
