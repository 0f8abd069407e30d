// `node benchmarks/page-speed.ts`: Lighthouse on pages of the console and of the documentation site, as on a phone with a
// slow network and on a desktop. Needs the console's build and `npm run docs:build`, and the Chromium that
// SERVEGYM_CHROMIUM names. npx fetches Lighthouse.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import getPort from 'get-port';
import { serve } from 'vitepress';
import { startServe } from '../maintenance/test-servers/servegym.ts';

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });

const LIGHTHOUSE = 'lighthouse@13.5.0';
const CATEGORIES = ['performance', 'accessibility', 'best-practices'] as const;
const CONSOLE_PAGES = ['/web/', '/fleet/web/', '/inferencegym/web/', '/plan/'];
const SITE_PAGES = [
  ...['/', '/train-an-agent', '/environments', '/benchmarks', '/how-it-works', '/reference/command-line'],
  '/reference/http-llmserve',
];

interface Visit {
  readonly page: string;
  readonly screen: 'phone' | 'desktop';
  /** Of 100, by category. */
  readonly scores: Readonly<Record<(typeof CATEGORIES)[number], number>>;
  /** First and largest contentful paint, and total blocking time, ms. */
  readonly fcpMs: number;
  readonly lcpMs: number;
  readonly tbtMs: number;
  /** Cumulative layout shift. */
  readonly cls: number;
  /** Bytes over the network. */
  readonly bytes: number;
  /** Audits of accessibility and best practices that failed. */
  readonly failed: readonly string[];
}

const run = promisify(execFile);

async function visit(url: string, page: string, screen: Visit['screen']): Promise<Visit> {
  const preset = screen === 'desktop' ? ['--preset=desktop'] : [];
  const { stdout } = await run(
    'npx',
    [
      ...['--yes', LIGHTHOUSE, url, '--output=json', '--quiet', `--only-categories=${CATEGORIES.join()}`],
      ...['--chrome-flags=--headless=new --no-sandbox', ...preset],
    ],
    {
      env: { ...process.env, CHROME_PATH: process.env.SERVEGYM_CHROMIUM },
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  const { categories, audits } = JSON.parse(stdout);
  const numeric = (audit: string) => audits[audit].numericValue as number;
  const failed = ['accessibility', 'best-practices'].flatMap((category) =>
    (categories[category].auditRefs as { id: string; weight: number }[])
      .filter(({ id, weight }) => weight > 0 && audits[id].score !== null && audits[id].score < 1)
      .map(({ id }) => id),
  );
  return {
    ...{ page, screen, failed },
    scores: Object.fromEntries(
      CATEGORIES.map((name) => [name, Math.round(100 * categories[name].score)]),
    ) as Visit['scores'],
    fcpMs: Math.round(numeric('first-contentful-paint')),
    lcpMs: Math.round(numeric('largest-contentful-paint')),
    tbtMs: Math.round(numeric('total-blocking-time')),
    cls: numeric('cumulative-layout-shift'),
    bytes: numeric('total-byte-weight'),
  };
}

const server = await startServe('--env', 'llmserve,fleet,inferencegym');
const port = await getPort();
await serve({ root: fileURLToPath(new URL('../docs', import.meta.url)), port });
const visits: Visit[] = [];
for (const [address, pages] of [
  [server.url, CONSOLE_PAGES],
  [`http://localhost:${port}`, SITE_PAGES],
] as const) {
  for (const page of pages) {
    for (const screen of ['phone', 'desktop'] as const) {
      const seen = await visit(address + page, page, screen);
      visits.push(seen);
      console.error(`${page} on a ${screen}: ${seen.scores.performance}`);
    }
  }
}
await server.stop();

if (values.json) {
  console.log(JSON.stringify(visits, null, 2));
} else {
  console.log(
    '| page | screen | performance | accessibility | best practices | FCP, ms | LCP, ms | TBT, ms | CLS | kB | failed |',
  );
  console.log('|---|---|---|---|---|---|---|---|---|---|---|');
  for (const { page, screen, scores, fcpMs, lcpMs, tbtMs, cls, bytes, failed } of visits) {
    const figures = [...CATEGORIES.map((name) => scores[name]), fcpMs, lcpMs, tbtMs, cls.toFixed(3)];
    console.log(
      `| \`${page}\` | ${screen} | ${figures.join(' | ')} | ${Math.round(bytes / 1000)} | ${failed.join(', ')} |`,
    );
  }
}
process.exit();
