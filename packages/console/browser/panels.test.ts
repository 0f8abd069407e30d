import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { ConsolePage } from './console-page.ts';
import { openPage, startBoth } from './start.ts';

const { browser, server } = await startBoth();
let page: ConsolePage;

async function open(address: string): Promise<ConsolePage> {
  page = await openPage(browser, `${server.url}/web/${address}`);
  return page;
}

/** Plays an episode with a decision by hand in it, and opens the panel that shares it. */
async function playedAndShared() {
  await open('?task=static_workload&seed=6&policy=random');
  await page.untilWindow(3);
  await page.untilOver();
  const total = await page.totals();
  const panel = await page.open('Share');
  await panel.getByText('sha256:').waitFor();
  return { total, panel };
}

describe('an episode as a link', () => {
  it('opens to the same episode, checked bit for bit', async () => {
    const { total, panel } = await playedAndShared();
    const link = await panel.getByLabel('Link to the episode').inputValue();
    await page.close();
    assert.ok(link.startsWith(`${server.url}/web/#episode=`), link.slice(0, 80));
    page = await openPage(browser, link);
    await page.view.getByText(/^Recorded episode by Random, \d+ windows\.$/).waitFor();
    await page.view.getByText('Replayed bit for bit').waitFor();
    await page.choice('Speed').selectOption('60');
    await page.score.waitFor();
    assert.equal(await page.totals(), total);
  });

  it('that is not over stops where it was left, says so and who played it, and can be played on', async () => {
    await open('?task=static_workload&seed=6&policy=heuristic');
    await page.choice('Speed').selectOption('1');
    await page.untilWindow(3);
    await page.button('Take over').click();
    await page.untilIdle();
    await page.step();
    const windows = await page.window();
    const panel = await page.open('Share');
    await panel.getByText('sha256:').waitFor();
    const link = await panel.getByLabel('Link to the episode').inputValue();
    await page.close();

    page = await openPage(browser, link);
    const note = page.view.locator('.opened');
    await note.getByText(`Recorded episode by Heuristic rules, By hand, ${windows} windows.`).waitFor();
    await note.getByText('Replayed bit for bit').waitFor();
    await note.getByText('The recording stops before the episode is over').waitFor();
    await page.untilWindow(windows);
    await page.button('Play again').waitFor();
    await page.untilIdle();
    assert.equal(await page.window(), windows);
    assert.equal(await page.button('Step').isDisabled(), true);
    assert.equal(await page.choice('Played by').inputValue(), 'recorded');

    await page.choice('Played by').selectOption('default');
    await page.button('Step').click();
    await page.untilWindow(windows + 1);
    await note.getByText(`The windows after ${windows} are not recorded`).waitFor();
    const again = await page.open('Share');
    await again
      .getByText(`Heuristic rules, By hand, Default configuration, ${windows + 1} windows`)
      .waitFor();
  });

  it('that is damaged is told, and the page plays on', async () => {
    await open('?task=static_workload&policy=hand');
    await page.untilWindow(0);
    await page.page.evaluate(() => {
      location.hash = '#episode=abc';
    });
    await page.problem.waitFor();
    assert.match((await page.problem.textContent()) ?? '', /The link is damaged/);
    await page.button('Close').click();
    await page.button('Step').click();
    await page.untilWindow(1);
  });
});

describe('an episode as a file', () => {
  it('is saved, opened again and verified; a changed one is not', async () => {
    const { total, panel } = await playedAndShared();
    const download = page.page.waitForEvent('download');
    await panel.getByRole('link', { name: 'Save as file' }).click();
    const file = await download;
    assert.equal(file.suggestedFilename(), 'llmserve-static_workload-6.episode.json');
    const text = readFileSync((await file.path())!, 'utf8');
    const give = (content: string) =>
      panel
        .getByLabel('Episode file')
        .setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(content) });

    await page.choice('Speed').selectOption('2');
    await give(text);
    await page.view.getByText('Replayed bit for bit').waitFor();
    await page.untilWindow(2);
    await page.button('Pause').click();
    await page.page.keyboard.press('End');
    await page.score.waitFor();
    assert.equal(await page.totals(), total);

    const episode = JSON.parse(text);
    episode.actions.forEach((action: { batch_cap: number }) => {
      action.batch_cap = 1;
    });
    await page.open('Share');
    await give(JSON.stringify(episode));
    await page.view.getByText('It did not come out as recorded').waitFor();

    await page.open('Share');
    await give('not an episode');
    await panel.getByText('Expected an episode file').waitFor();
    await page.page.keyboard.press('Escape');
  });
});

describe('the readme', () => {
  it('is set as a page, with the way to every route', async () => {
    await open('?task=static_workload&seed=3&policy=hand');
    await page.untilWindow(0);
    const readme = await page.open('Readme');
    await readme.getByRole('link', { name: 'Every route, to try out' }).waitFor();
    await readme.getByRole('link', { name: 'Every route, to try out' }).click();
    await page.page.waitForURL(/\/docs$/);
  });
});
