import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Locator } from 'playwright-core';
import { startServe } from '../../../maintenance/test-servers/servegym.ts';
import { type ConsolePage, eventually } from './console-page.ts';
import { openPage, startBoth } from './start.ts';

const GUESS = fileURLToPath(new URL('../../openenv/examples/guess/environment.ts', import.meta.url));
/** Pixels of a curve's own colour that a chart of a dozen windows has at the least. */
const FEWEST_PIXELS = 8;
const EPISODE = 'task=static_workload&seed=6';

const { browser, server } = await startBoth();
const guess = await startServe('--env', GUESS);
after(() => guess.stop('SIGKILL'));

/** Opens a page that plays nothing by itself, in a window tall enough for all charts, and shows all of them. */
async function open(url: string, hasMore = true): Promise<ConsolePage> {
  const page = await openPage(browser, url, {
    reducedMotion: 'reduce',
    viewport: { width: 1440, height: 2400 },
  });
  await page.untilWindow(0);
  if (hasMore) await page.view.getByText('More charts').click();
  return page;
}

interface DrawnChart {
  readonly title: string;
  /** Pixels in the colours of the legend, counted up to the fewest; of the decisions, in the colour of their curves. */
  readonly pixels: number;
  /** Empty unless it is asked for. */
  readonly picture: string;
}

/** Every chart of the page as it is drawn now. */
function drawnCharts({ view }: ConsolePage, withPictures = false): Promise<DrawnChart[]> {
  return view.locator('figure.panel').evaluateAll(
    (figures, { withPictures, fewest }) =>
      figures.map((figure) => {
        const title = figure.getAttribute('aria-label') ?? '';
        const canvas = figure.querySelector('canvas');
        if (!canvas) return { title, pixels: 0, picture: '' };
        const { width, height } = canvas;
        // Of a copy, because reading a canvas often makes the browser draw it in another way.
        const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })!;
        copy.drawImage(canvas, 0, 0);
        const drawn = copy.getImageData(0, 0, width, height).data;
        const probe = document.createElement('i');
        probe.style.color = 'var(--median)';
        figure.append(probe);
        const curves = [...figure.querySelectorAll('.key'), probe].map((key) => {
          const [red, green, blue] = (getComputedStyle(key).color.match(/[\d.]+/g) ?? []).map(Number);
          return [red, green, blue];
        });
        probe.remove();
        let pixels = 0;
        for (let i = 0; i < drawn.length && pixels < fewest; i += 4) {
          const isNear = ([red, green, blue]: number[]) =>
            Math.abs(drawn[i] - red) + Math.abs(drawn[i + 1] - green) + Math.abs(drawn[i + 2] - blue) < 24;
          if (drawn[i + 3] > 200 && curves.some(isNear)) pixels++;
        }
        return { title, pixels, picture: withPictures ? canvas.toDataURL() : '' };
      }),
    { withPictures, fewest: FEWEST_PIXELS },
  );
}

/** Waits until every chart has a curve, and gives the charts. */
async function untilDrawn(page: ConsolePage, charts: number): Promise<DrawnChart[]> {
  const blank = async () => {
    const all = await drawnCharts(page);
    if (all.length < charts) return [`${all.length} of ${charts} charts`];
    return all.filter(({ pixels }) => pixels < FEWEST_PIXELS).map(({ title }) => title);
  };
  await eventually(
    async () => (await blank()).join(', '),
    (titles) => titles === '',
  );
  // The last drawings may wait for their displayed frame.
  await page.page.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
  );
  return drawnCharts(page, true);
}

/** Plays so many windows by hand or by a policy. */
async function play(page: ConsolePage, windows: number): Promise<void> {
  await page.untilWindow(0);
  for (let window = 1; window <= windows; window++) {
    await page.button('Step').click();
    await page.untilWindow(window);
  }
}

const pictures = (charts: readonly DrawnChart[]) => charts.map(({ title, picture }) => [title, picture]);

function chooseFile(panel: Locator, content: unknown): Promise<void> {
  return panel.getByLabel('Episode file').setInputFiles({
    name: 'episode.json',
    mimeType: 'application/json',
    buffer: Buffer.from(JSON.stringify(content)),
  });
}

describe('the charts are drawn', () => {
  it('on the plain page, and by the options of the address', async () => {
    for (const query of [
      '',
      `?${EPISODE}&policy=heuristic&option.rate_scale=1.5`,
      `?${EPISODE}&policy=hand`,
    ]) {
      const page = await open(`${server.url}/web/${query}`);
      await play(page, 12);
      await untilDrawn(page, 7);
      await page.close();
    }
  });

  it('side by side, and after one has given its place to another', async () => {
    const page = await open(`${server.url}/web/?${EPISODE}&policy=heuristic&policy=default`);
    await play(page, 12);
    await untilDrawn(page, 7);
    await page.button('Remove Default configuration').click();
    await page.choice('Compare with').selectOption('random');
    await page.view.getByRole('article').nth(1).getByText('Return').waitFor();
    await untilDrawn(page, 7);
  });

  it('alike by a shared link and from a file, whatever was on the page before', async () => {
    const author = await open(`${server.url}/web/?${EPISODE}&policy=default`);
    await author.untilOver();
    const shared = await author.open('Share');
    await shared.getByText('sha256:').waitFor();
    const link = await shared.getByLabel('Link to the episode').inputValue();
    const href = await shared.getByRole('link', { name: 'Save as file' }).getAttribute('href');
    const file = JSON.parse(decodeURIComponent(href!.slice(href!.indexOf(',') + 1)));
    await author.close();

    const linked = await open(link);
    await linked.view.getByText('Replayed bit for bit').waitFor();
    const byLink = await untilDrawn(linked, 7);
    await linked.close();

    const other = await open(`${server.url}/web/?task=bursty_workload&seed=2&policy=heuristic`);
    await play(other, 3);
    await chooseFile(await other.open('Share'), file);
    await other.view.getByText('Replayed bit for bit').waitFor();
    const byFile = await untilDrawn(other, 7);
    await other.close();

    assert.deepEqual(pictures(byFile), pictures(byLink), 'file and link');
  });

  it('on the pages of other environments', async () => {
    for (const [url, windows, charts] of [
      [`${server.url}/inferencegym/web/?policy=baseline`, 12, 7],
      [`${server.url}/benchmark/web/?policy=hand`, 4, 3],
      [`${guess.url}/web/?policy=random&seed=3`, 4, 3],
    ] as const) {
      const page = await open(url, charts > 3);
      await play(page, windows);
      await untilDrawn(page, charts);
      await page.close();
    }
  });
});
