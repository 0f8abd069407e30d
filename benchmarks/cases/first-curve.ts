import { launchChromium } from '../../maintenance/test-servers/chromium.ts';
import { serveFiles } from '../../packages/element/browser/static-files.fixture.ts';
import { benchmark } from '../harness.ts';

const PAGE =
  '<script type="module" src="./servegym-sim.js"></script><servegym-sim model="llama-3-8b" gpu="h100" rate="8" input="1024" output="256"></servegym-sim>';

/** Notes when each part is there, ms from the start of the page. */
const NOTES = `
window.times = [];
addEventListener('load', () => window.times.push(['load', performance.now()]), { once: true });
addEventListener('servegym-curve', ({ detail }) =>
  requestAnimationFrame(() => setTimeout(() => window.times.push([detail.isWhole ? 'whole' : 'first', performance.now()]))));
`;

export default benchmark({
  what: 'Time from the load event of a page with <servegym-sim> to its first and its whole curve on the screen, without a cache; npm run build -w packages/element first.',
  options: { rounds: 5, throttle: [1, 4] },
  async *run({ rounds, throttle }) {
    const files = await serveFiles({ 'plain.html': PAGE });
    const browser = await launchChromium();
    try {
      for (let round = 1; round <= rounds; round++)
        for (const rate of throttle) {
          const context = await browser.newContext();
          const page = await context.newPage();
          const session = await context.newCDPSession(page);
          await session.send('Emulation.setCPUThrottlingRate', { rate });
          await page.addInitScript(NOTES);
          await page.goto(`${files.url}plain.html`);
          await page.waitForFunction("times.some(([name]) => name === 'whole')", null, { timeout: 60_000 });
          const times = Object.fromEntries(await page.evaluate<[string, number][]>('times.toReversed()'));
          yield {
            ...{ throttle: rate, round, load_ms: times.load },
            ...{ first_ms: times.first! - times.load!, whole_ms: times.whole! - times.load! },
          };
          await context.close();
        }
    } finally {
      await browser.close();
      files.server.closeAllConnections();
      files.server.close();
    }
  },
});
