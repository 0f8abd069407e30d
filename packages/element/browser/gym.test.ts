import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { portableMath } from '@servegym/simulator';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../../../maintenance/test-servers/chromium.ts';
import { Game } from '../src/game.ts';
import type { GameChoice, GameWindow } from '../src/game-moves.ts';
import { openPage, serveFiles } from './static-files.fixture.ts';

/** A guard against hanging. */
const LONGEST_WAIT_MS = 60_000;
const hash = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

describe('<servegym-gym>', () => {
  let browser: Browser;
  let files: Awaited<ReturnType<typeof serveFiles>>;
  before(async () => {
    const element = (attributes: string) =>
      `<script type="module" src="./servegym-sim.js"></script><servegym-gym ${attributes}></servegym-gym>`;
    files = await serveFiles({
      'llmserve.html': element('environment="llmserve" task="static_workload" seed="7"'),
      'fleet.html': element('environment="fleet" task="diurnal" seed="1"'),
      'wrong.html': element('environment="llmserve" task="made_up"'),
    });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    files?.server.closeAllConnections();
    files?.server.close();
  });

  async function open(path: string, options = {}) {
    const shown = await openPage(browser, new URL(path, files.url).href, LONGEST_WAIT_MS, options);
    await shown.page.getByRole('button', { name: 'Play a window' }).waitFor();
    return shown;
  }

  const rested = (page: Page) => page.locator('servegym-gym .charts[aria-busy=false] svg').first().waitFor();
  const played = (page: Page): Promise<GameWindow[]> =>
    page.evaluate(() => (document.querySelector('servegym-gym') as unknown as { windows: never }).windows);

  /** What Node plays with the same actions. */
  function nodeGame(choice: GameChoice, windows: readonly GameWindow[]) {
    const game = new Game(choice);
    return { windows: windows.map((window) => game.play(window[0]!.action)), game };
  }

  it('plays an episode of llmserve beside the rule and PPO with the bits of Node, and its link replays it', async () => {
    await using shown = await open('llmserve.html');
    const { page } = shown;
    await rested(page);
    await page.getByRole('button', { name: 'Play 10' }).click();
    await rested(page);
    await page.getByLabel('speculation depth').selectOption('4');
    await page.getByLabel('batch cap').selectOption('32');
    await page.getByRole('button', { name: 'To the end' }).click();
    await page.getByRole('status').filter({ hasText: 'Scores' }).waitFor();
    const windows = await played(page);
    assert.equal(windows.length, 60);
    assert.equal(windows[10]![0]!.action.speculation_depth, 4);
    const node = nodeGame({ environment: 'llmserve', task: 'static_workload', seed: 7 }, windows);
    assert.equal(hash(windows), hash(node.windows));
    const scores = (await node.game.scores()).map((score) => score.toFixed(2));
    const text = await page.getByRole('status').innerText();
    assert.ok(text.includes(`you ${scores[0]}, rule ${scores[1]}, PPO ${scores[2]}`), text);

    const link = await page.getByRole('link', { name: 'Link to this episode' }).getAttribute('href');
    await using again = await open(link!);
    await again.page.getByRole('status').filter({ hasText: 'Scores' }).waitFor();
    assert.equal(hash(await played(again.page)), hash(windows));
    assert.equal(await again.page.getByRole('status').innerText(), text);
  });

  it('plays windows of fleet with the bits of Node', async () => {
    await using shown = await open('fleet.html');
    const { page } = shown;
    await rested(page);
    await page.getByLabel('replicas', { exact: true }).selectOption('6');
    for (const count of [10, 20]) {
      await page.getByRole('button', { name: 'Play 10' }).click();
      await page
        .getByRole('status')
        .filter({ hasText: `Window ${count} ` })
        .waitFor();
    }
    const windows = await played(page);
    const node = nodeGame({ environment: 'fleet', task: 'diurnal', seed: 1 }, windows);
    assert.equal(hash(windows), hash(node.windows));
  });

  it('computes with functions that have the bits of Node, where those of the browser need not', async () => {
    const source = join(import.meta.dirname, '../../simulator/src/portable-math.ts');
    const script = stripTypeScriptTypes(readFileSync(source, 'utf8')).replace('export const', 'const');
    const bits = (functions: typeof portableMath) =>
      Object.entries(functions).map(([name, of]) => [
        name,
        Array.from({ length: 20_000 }, (_, i) => of((i + 1) / 997, (i % 13) / 7)),
      ]);
    await using shown = await open('llmserve.html');
    const there = await shown.page.evaluate(`(() => { ${script}; return (${bits})(portableMath); })()`);
    assert.equal(hash(there), hash(bits(portableMath)));
  });

  it('names the tasks there are, where an attribute has none of them', async () => {
    await using shown = await open('wrong.html');
    await shown.page
      .getByRole('alert')
      .filter({ hasText: 'task: expected one of static_workload' })
      .waitFor();
  });

  it('has no fault of accessibility, light and wide, dark and narrow', async () => {
    for (const [colorScheme, width] of [
      ['light', 1280],
      ['dark', 390],
    ] as const) {
      await using shown = await open('llmserve.html', { colorScheme, viewport: { width, height: 900 } });
      const { page } = shown;
      await page.addStyleTag({ content: ':root { color-scheme: light dark }' });
      await rested(page);
      await page.getByRole('button', { name: 'Play 10' }).click();
      await page.getByRole('status').filter({ hasText: 'Window 10' }).waitFor();
      await page.evaluate(axe.source);
      const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.html}`),
        [],
      );
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} px too wide at ${width}`);
    }
  });
});
