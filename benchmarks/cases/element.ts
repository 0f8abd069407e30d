import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { chromium } from 'playwright-core';
import { DIST, serveFiles } from '../../packages/element/browser/static-files.fixture.ts';
import { benchmark } from '../harness.ts';

const PAGE = `<script type="module">
addEventListener('servegym-curve', ({ detail }) => {
  globalThis.curves ??= {};
  globalThis.curves[detail.isWhole ? 'whole' : 'first'] ??= performance.now();
});
</script>
<script type="module" src="./servegym-sim.js"></script><servegym-sim></servegym-sim>`;

export default benchmark({
  what: 'Time from the load of a page with `<servegym-sim>` to its first and its full curve, and what it transfers, in the Chromium that SERVEGYM_CHROMIUM names: each visit in a browser of empty caches, from a file server of this machine. `--slower 1,4` throttles the processor of the page and of its worker by these factors. Needs the build of packages/element.',
  options: { visits: 15, slower: [1, 4] },
  async *run({ visits, slower }) {
    const files = await serveFiles({ 'page.html': PAGE });
    const browser = await chromium.launch({ executablePath: process.env.SERVEGYM_CHROMIUM });
    try {
      for (const factor of slower) {
        const times: { first: number; whole: number; bytes: number }[] = [];
        for (let visit = 0; visit < visits; visit++) {
          const context = await browser.newContext();
          const page = await context.newPage();
          const session = await context.newCDPSession(page);
          await session.send('Emulation.setCPUThrottlingRate', { rate: factor });
          const asked = new Set<string>();
          context.on('request', (request) => asked.add(request.url()));
          await page.goto(`${files.url}page.html`, { waitUntil: 'load' });
          await page.waitForFunction('globalThis.curves?.whole');
          const seen = await page.evaluate(() => {
            const [{ loadEventEnd }] = performance.getEntriesByType(
              'navigation',
            ) as PerformanceNavigationTiming[];
            const { first, whole } = (globalThis as unknown as { curves: Record<'first' | 'whole', number> })
              .curves;
            return { first: first - loadEventEnd!, whole: whole - loadEventEnd! };
          });
          const names = [...asked]
            .map((url) => url.slice(files.url.length))
            .filter((name) => name !== 'page.html');
          const size = (name: string) => gzipSync(readFileSync(join(DIST, name)), { level: 9 }).length;
          times.push({ ...seen, bytes: names.reduce((sum, name) => sum + size(name), 0) });
          await context.close();
        }
        const of = (key: keyof (typeof times)[number], q: number) =>
          percentileOfSorted(Float64Array.from(times, (time) => time[key]).sort(), q);
        yield {
          ...{ 'processor slower': factor, visits },
          ...{ 'first curve, ms, median': of('first', 50), p90: of('first', 90) },
          ...{ 'full curve, ms, median': of('whole', 50), 'kB, gzip': of('bytes', 50) / 1000 },
        };
      }
    } finally {
      await browser.close();
      files.server.close();
    }
  },
});
