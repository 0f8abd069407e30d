import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Locator } from 'playwright-core';
import type { ConsolePage } from './console-page.ts';
import { openPage, startBoth } from './start.ts';

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL('..', import.meta.url));

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

describe('the runs that a browser keeps', () => {
  it('are named, pinned, watched, saved as CSV and put side by side, and last beyond the page', async () => {
    const page = await openPage(browser, `${server.url}/web/?task=static_workload&seed=4&policy=heuristic`);
    await page.untilOver();
    await page.choice('Played by').selectOption('default');
    await page.button('Same again').click();
    await page.untilWindow(0);
    await page.score.waitFor({ state: 'detached' });
    await page.score.waitFor();
    await page.page.reload();
    await page.untilWindow(0);
    const panel = await page.open('Runs');
    const runs = panel.getByRole('listitem');
    await runs.nth(1).waitFor();
    await runs.nth(1).getByRole('textbox').fill('rules first');
    await runs.nth(1).getByRole('textbox').press('Enter');
    await runs.nth(1).getByRole('button', { name: 'Pin' }).click();
    const pinned = panel.getByRole('listitem', { name: 'rules first' });
    await pinned.getByRole('button', { name: 'Pinned' }).waitFor();
    assert.equal(await runs.first().getAttribute('aria-label'), 'rules first', 'pinned ones first');

    const download = page.page.waitForEvent('download');
    await pinned.getByRole('button', { name: 'CSV' }).click();
    const file = await download;
    assert.equal(file.suggestedFilename(), 'rules-first.csv');
    const [header, ...rows] = readFileSync((await file.path())!, 'utf8')
      .trim()
      .split('\r\n');
    assert.match(header, /^window,time_s,reward,return,.*queue_depth.*action\.batch_cap/);
    assert.equal(rows.length, 61);

    await pinned.getByRole('button', { name: 'Link' }).click();
    const link = await pinned.getByLabel('Link to the episode').inputValue();
    assert.ok(link.startsWith(`${server.url}/web/#episode=`), link.slice(0, 80));

    for (const run of [0, 1]) await runs.nth(run).getByRole('checkbox').check();
    await panel.getByRole('button', { name: 'Compare the chosen runs' }).click();
    await page.view.getByText('2 recorded runs side by side.').waitFor();
    const cards = page.view.getByRole('article');
    await cards.nth(1).getByText('Score').waitFor();
    assert.deepEqual(await cards.evaluateAll((all) => all.map((card) => card.getAttribute('aria-label'))), [
      'Heuristic rules',
      'Default configuration',
    ]);

    await page.page.locator('h1').click();
    await page.page.keyboard.press('+');
    await page.button('Whole episode').click();
    await page.button('Whole episode').waitFor({ state: 'detached' });
    const plot = page.view.getByRole('figure', { name: 'Reward' }).locator('.u-over');
    await plot.scrollIntoViewIfNeeded();
    const box = (await plot.boundingBox())!;
    await page.page.mouse.move(box.x + 20, box.y + 30);
    await page.page.mouse.down();
    await page.page.mouse.move(box.x + box.width / 2, box.y + 30, { steps: 4 });
    await page.page.mouse.up();
    await page.button('Whole episode').waitFor();
    await page.page.mouse.move(0, 0);
    await page.untilShown((window) => window === 60);
    assert.equal(await page.button('Back to now').count(), 0, 'a drag is no click on a window');

    await (await page.open('Runs')).getByRole('button', { name: 'Delete rules first' }).click();
    await pinned.waitFor({ state: 'detached' });
  });
});

describe('the panel for developers', () => {
  let panel: Locator;

  beforeEach(async () => {
    page = await openPage(browser, `${server.url}/web/?task=static_workload&seed=3&policy=hand`);
    await page.untilWindow(0);
    panel = await page.open('Developers');
  });
  const tab = (name: string) => panel.getByRole('radio', { name, exact: true }).check({ force: true });

  /** The raw answer, once it has this text in it. */
  async function answerWith(text: string): Promise<string> {
    await page.page.waitForFunction(
      (wanted) => document.querySelector<HTMLTextAreaElement>('[aria-label=Answer]')?.value.includes(wanted),
      text,
    );
    return panel.getByLabel('Answer', { exact: true }).inputValue();
  }

  describe('the form of the action', () => {
    it('sends what it shows, in a session of its own, with the raw request and answer', async () => {
      await panel.getByRole('button', { name: 'Reset' }).click();
      assert.match(await answerWith('"session_id"'), /^200 .*\n\n\{/);
      await panel.getByLabel('INT8', { exact: true }).check({ force: true });
      await panel.getByRole('button', { name: 'Step', exact: true }).click();
      await answerWith('"step_index": 1');
      const request = await panel.getByLabel('Request', { exact: true }).inputValue();
      assert.match(request, /^POST \/step\n\n/);
      assert.equal(JSON.parse(request.split('\n\n')[1]).action.quantization_tier, 'INT8');
      await panel.getByRole('button', { name: 'State' }).click();
      await answerWith('"step_count": 1');
      await page.page.keyboard.press('Escape');
      assert.equal(await page.window(), 0, 'the page’s own episode is untouched');
    });
  });

  describe('the log of requests', () => {
    it('has what the page has asked, raw', async () => {
      await tab('Requests');
      const reset = panel.locator('details', { hasText: '/reset' });
      await reset.locator('summary').click();
      assert.match(
        await reset.getByLabel('Request', { exact: true }).inputValue(),
        /"task_id": "static_workload"/,
      );
      assert.match(await reset.getByLabel('Answer', { exact: true }).inputValue(), /"queue_depth": 0/);
    });
  });

  describe('the schemas', () => {
    it('are tables of fields with type, range and meaning', async () => {
      await tab('Schema');
      const row = panel.getByRole('row', { name: /batch_cap/ });
      assert.match((await row.textContent()) ?? '', /integer 1 to 512/);
    });
  });

  describe('the snippets', () => {
    async function snippet(language: string): Promise<string> {
      await tab('Snippets');
      await tab(language);
      return panel.getByLabel(`${language} code`).inputValue();
    }
    function written(name: string, text: string): { path: string; remove: () => void } {
      // Beside the packages, so that imports of theirs are found.
      const folder = mkdtempSync(join(name.endsWith('.mts') ? PACKAGE : tmpdir(), '.snippet-'));
      const path = join(folder, name);
      writeFileSync(path, text);
      return { path, remove: () => rmSync(folder, { recursive: true }) };
    }

    it('in Python, TypeScript and for a shell play the page’s episode as they are', async () => {
      const python = process.env.SERVEGYM_PYTHON;
      assert.ok(python, 'Expected SERVEGYM_PYTHON; `npm test` sets it');
      const scripts = [
        { language: 'Python', name: 'play.py', command: [python], says: /^\d+\.\d+/ },
        {
          language: 'TypeScript',
          name: 'play.mts',
          command: [process.execPath],
          says: /^\d+\.\d+ [\s\S]*score/,
        },
        { language: 'curl', name: 'play.sh', command: ['sh'], says: /"step_index":1[\s\S]*"score"/ },
      ];
      for (const { language, name, command, says } of scripts) {
        const { path, remove } = written(name, await snippet(language));
        try {
          const { stdout } = await run(command[0], [...command.slice(1), path], { timeout: 300_000 });
          assert.match(stdout, says, language);
        } finally {
          remove();
        }
      }
    });

    it('for MCP names the address where the server answers', async () => {
      const { mcpServers } = JSON.parse(await snippet('MCP'));
      const { url } = mcpServers.servegym;
      const initialize = {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-06-18',
          capabilities: {},
          clientInfo: { name: 'test', version: '1' },
        },
      };
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify(initialize),
      });
      assert.match(await response.text(), /"serverInfo"/);
    });
  });

  describe('the readme', () => {
    it('is set as a page, with the way to every route', async () => {
      await page.page.keyboard.press('Escape');
      const readme = await page.open('Readme');
      await readme.getByRole('link', { name: 'Every route, to try out' }).waitFor();
      await readme.getByRole('link', { name: 'Every route, to try out' }).click();
      await page.page.waitForURL(/\/docs$/);
    });
  });
});
