import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
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
