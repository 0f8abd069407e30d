// `node packages/console/scripts/measure.ts`: what a visit loads, first paint, and frames a second while episodes are
// played at 60 windows/s, the fastest speed of the page, and while one of 10,000 windows is wound through, in the Chromium
// that SERVEGYM_CHROMIUM names. Needs the console's build.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { launchChromium } from '../../../maintenance/test-servers/chromium.ts';
import { startServe } from '../../../maintenance/test-servers/servegym.ts';
import { type ConsolePage, openConsole } from '../browser/console-page.ts';

const DIST = fileURLToPath(new URL('../dist/', import.meta.url));
const COUNTER = fileURLToPath(new URL('../../openenv/src/fixtures/counter-environment.ts', import.meta.url));
const VIEW = { viewport: { width: 1440, height: 900 } };

/** Every file of the build: those that the page asks for at once, and those that it fetches when they are needed. */
function printSizes(): void {
  const size = (path: string) => gzipSync(readFileSync(path), { level: 9 }).length;
  const files = readdirSync(join(DIST, 'assets')).map((name) => ({
    name,
    bytes: size(join(DIST, 'assets', name)),
  }));
  const page = readFileSync(join(DIST, 'index.html'), 'utf8');
  const entry = page.match(/assets\/(index-\S+\.js)/)![1];
  const imports = readFileSync(join(DIST, 'assets', entry), 'utf8').matchAll(/from"\.\/([^"]+)"/g);
  const imported = new Set([...imports].map(([, name]) => name));
  const first = files.filter(({ name }) => page.includes(name) || imported.has(name));
  const later = files.filter((file) => !first.includes(file)).sort((a, b) => b.bytes - a.bytes);
  const sum = (list: readonly { bytes: number }[]) => list.reduce((total, { bytes }) => total + bytes, 0);
  const html = size(join(DIST, 'index.html'));
  console.log(`a first visit loads ${kilobytes(html + sum(first))} (HTML, JavaScript, CSS, icon; gzip -9)`);
  for (const { name, bytes } of [{ name: 'index.html', bytes: html }, ...first])
    console.log(`  ${kilobytes(bytes).padStart(8)}  ${name}`);
  console.log(`fetched when needed, ${kilobytes(sum(later))} in all`);
  for (const { name, bytes } of later) console.log(`  ${kilobytes(bytes).padStart(8)}  ${name}`);
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}

/** Times of the displayed frames until `done` says so in the page. */
async function frameTimes(shown: ConsolePage, done: string): Promise<number[]> {
  return shown.page.evaluate(
    (isDone) =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        const note = (now: number) => {
          times.push(now);
          if (document.querySelector(isDone)) resolve(times);
          else requestAnimationFrame(note);
        };
        requestAnimationFrame(note);
      }),
    done,
  );
}

function printFrames(what: string, times: readonly number[]): void {
  const gaps = times
    .slice(1)
    .map((time, i) => time - times[i])
    .sort((a, b) => a - b);
  const seconds = (times[times.length - 1] - times[0]) / 1000;
  const median = gaps[gaps.length >> 1].toFixed(1);
  const slow = gaps[Math.floor(gaps.length * 0.99)].toFixed(1);
  const rate = ((times.length - 1) / seconds).toFixed(1);
  console.log(
    `${what}: ${rate} frames/s over ${seconds.toFixed(1)} s, median gap ${median} ms, p99 ${slow} ms`,
  );
}

/** Episodes that are played: environment and scenario of the page, and who plays them side by side. */
const EPISODES: readonly (readonly [path: string, policies: readonly string[]])[] = [
  ['/web/?task=adversarial_multitenant&seed=1', ['heuristic']],
  ['/web/?task=adversarial_multitenant&seed=1', ['heuristic', 'static-tuned', 'default', 'random']],
  ['/fleet/web/?task=flash_crowds&seed=1', ['hpa']],
  ['/fleet/web/?task=flash_crowds&seed=1', ['hpa', 'keda', 'rule', 'static']],
  ['/inferencegym/web/?task=3&seed=1', ['baseline']],
];

/** Plays an episode from window 1 to its end at 60 windows a second. */
async function measurePlay(
  browser: Browser,
  origin: string,
  path: string,
  policies: readonly string[],
): Promise<void> {
  const players = policies.map((policy) => `&policy=${policy}`).join('');
  const shown = await openConsole(browser, `${origin}${path}${players}`, VIEW);
  await shown.untilWindow(1);
  const name = await shown.view.locator('.brand p').textContent();
  const paint = await shown.page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
  );
  await shown.choice('Speed').selectOption('60');
  const times = await frameTimes(shown, 'section.score');
  const count = policies.length === 1 ? '1 policy' : `${policies.length} policies`;
  printFrames(`${name}, ${count}, first paint ${paint?.toFixed(0)} ms`, times);
  await shown.close();
}

/** Drags through an episode of 10,000 windows from its end to its start in 200 steps, a displayed frame each. */
async function measureLongEpisode(browser: Browser): Promise<void> {
  const server = await startServe('--env', COUNTER);
  try {
    const shown = await openConsole(browser, `${server.url}/web/?policy=hand&option.target=1000000`, VIEW);
    await shown.untilWindow(0);
    const panel = await shown.open('Share');
    const reset = { seed: 0, target: 1_000_000 };
    const actions = Array.from({ length: 10_000 }, (_, i) => ({ amount: i % 10 }));
    await panel.getByLabel('Episode file').setInputFiles({
      name: 'long.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify({ format: 'openenv-episode/1', reset, actions })),
    });
    await shown.view.getByText('Recorded episode, 10,000 windows').waitFor();
    const times = await shown.page.evaluate(
      () =>
        new Promise<number[]>((resolve) => {
          const slider = document.querySelector<HTMLInputElement>('.scrubber input')!;
          const all: number[] = [];
          const drag = (now: number) => {
            all.push(now);
            slider.value = String(10_000 - all.length * 50);
            slider.dispatchEvent(new Event('input', { bubbles: true }));
            if (all.length < 200) requestAnimationFrame(drag);
            else resolve(all);
          };
          requestAnimationFrame(drag);
        }),
    );
    printFrames('winding through 10,000 windows', times);
    await shown.close();
  } finally {
    await server.stop('SIGKILL');
  }
}

printSizes();
const server = await startServe();
const browser = await launchChromium();
try {
  for (const [path, policies] of EPISODES) await measurePlay(browser, server.url, path, policies);
  await measureLongEpisode(browser);
} finally {
  await browser.close();
  await server.stop('SIGKILL');
}
