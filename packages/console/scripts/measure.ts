// `node packages/console/scripts/measure.ts`: bundle size, first paint, and the frame rate while an episode plays at
// full speed, in the Chromium that SERVEGYM_CHROMIUM names. Needs the console's build.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { launchChromium } from '../browser/chromium.ts';
import { openConsole } from '../browser/console-page.ts';
import { startServe } from '../browser/serve-process.ts';

const assets = fileURLToPath(new URL('../dist/assets/', import.meta.url));
for (const kind of ['js', 'css', 'woff2']) {
  const bytes = readdirSync(assets)
    .filter((name) => name.endsWith(`.${kind}`))
    .reduce((sum, name) => sum + gzipSync(readFileSync(join(assets, name))).length, 0);
  console.log(`${kind.padEnd(6)} ${(bytes / 1000).toFixed(1)} kB gzip`);
}

const server = await startServe();
const browser = await launchChromium();
try {
  const shown = await openConsole(browser, `${server.origin}/web/?policy=heuristic&seed=1`, {
    viewport: { width: 1440, height: 900 },
  });
  await shown.untilWindow(1);
  await shown.choice('Speed').selectOption('60');
  const frames = shown.page.evaluate(
    () =>
      new Promise<number[]>((resolve) => {
        const times: number[] = [];
        const note = (now: number) => {
          times.push(now);
          if (document.querySelector('.score')) resolve(times);
          else requestAnimationFrame(note);
        };
        requestAnimationFrame(note);
      }),
  );
  const times = await frames;
  const gaps = times
    .slice(1)
    .map((time, i) => time - times[i])
    .sort((a, b) => a - b);
  const seconds = (times[times.length - 1] - times[0]) / 1000;
  console.log(
    `frames ${((times.length - 1) / seconds).toFixed(1)}/s over ${seconds.toFixed(1)} s, ${await shown.window()} windows`,
  );
  console.log(
    `       median gap ${gaps[gaps.length >> 1].toFixed(1)} ms, p99 ${gaps[Math.floor(gaps.length * 0.99)].toFixed(1)} ms`,
  );
  const paint = await shown.page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
  );
  console.log(`first contentful paint ${paint?.toFixed(0)} ms`);
} finally {
  await browser.close();
  await server.kill();
}
