import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions } from 'playwright-core';
import { type ConsolePage, eventually } from './console-page.ts';
import {
  closeAfterTest,
  openPage,
  type ReverseProxy,
  serveForTest,
  startBoth,
  startReverseProxy,
} from './start.ts';

const GUESS = fileURLToPath(new URL('../../openenv/examples/guess/environment.ts', import.meta.url));
const MASKED_TASK = fileURLToPath(
  new URL('../../environments/examples/fixed-arrangement.ts', import.meta.url),
);
const COUNTER = fileURLToPath(new URL('../../openenv/src/fixtures/counter-environment.ts', import.meta.url));

// A server with all environments.
const { browser, server } = await startBoth();

/** Opens the console of an environment on the server of all. */
async function open(
  environment: string,
  query: string,
  options?: BrowserContextOptions,
): Promise<ConsolePage> {
  const path = environment === 'llmserve' ? '' : `/${environment}`;
  const page = await openPage(browser, `${server.url}${path}/web/${query}`, options);
  await page.untilWindow(0);
  return page;
}

/** Serves an environment for the test that runs, and opens its console. */
async function openServed(
  environment: string,
  query: string,
  options?: BrowserContextOptions,
): Promise<ConsolePage> {
  const server = await serveForTest(['--env', environment]);
  const page = await openPage(browser, `${server.url}/web/${query}`, options);
  await page.untilWindow(0);
  return page;
}

/** A proxy of the server, under a path prefix, for the test that runs. */
async function proxyForTest(): Promise<ReverseProxy> {
  const proxy = await startReverseProxy(server.url, '/gym');
  closeAfterTest(() => proxy.close());
  return proxy;
}

const field = (page: ConsolePage, name: string) =>
  page.view.getByRole('region', { name: 'The environment now' }).locator('.figure', { hasText: name });

describe('an environment of which nothing is known', () => {
  it('guess: is played through the form of its action, with charts of what it observes', async () => {
    const page = await openServed(GUESS, '?policy=hand&seed=41');
    // What only our environments have.
    assert.equal(await page.view.getByRole('link', { name: 'Plan' }).count(), 0);
    assert.match((await page.view.getByLabel('Speed').textContent()) ?? '', /8 steps\/s/);
    assert.match((await field(page, 'Hint').textContent()) ?? '', /start/);
    await page.choice('Number').fill('41');
    await page.button('Step').click();
    await page.untilWindow(1);
    assert.match((await field(page, 'Hint').textContent()) ?? '', /found/);
    await page.score.getByText('+1.00').waitFor();
    await page.view.getByRole('figure', { name: 'Hint' }).waitFor();
    await page.view.getByRole('figure', { name: 'Reward' }).waitFor();
  });

  it('guess: is played by a policy, saved and opened again', async () => {
    const page = await openServed(GUESS, '?policy=random&seed=3');
    await page.untilOver();
    const panel = await page.open('Share');
    await panel.getByText('sha256:').waitFor();
    const href = await panel.getByRole('link', { name: 'Save as file' }).getAttribute('href');
    await panel.getByLabel('Episode file').setInputFiles({
      name: 'episode.json',
      mimeType: 'application/json',
      buffer: Buffer.from(decodeURIComponent(href!.slice(href!.indexOf(',') + 1))),
    });
    await page.view.getByText('Replayed bit for bit').waitFor();
  });

  it('counter: 10,000 windows are opened, wound through and played on', async () => {
    const page = await openServed(COUNTER, '?policy=hand&seed=0&option.target=1000000');
    const episode = {
      format: 'openenv-episode/1',
      reset: { seed: 0, target: 1_000_000 },
      actions: Array.from({ length: 10_000 }, (_, i) => ({ amount: i % 10 })),
    };
    const panel = await page.open('Share');
    await panel.getByLabel('Episode file').setInputFiles({
      name: 'long.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(episode)),
    });
    await page.view.getByText('Recorded episode, 10,000 windows').waitFor();
    const total = async () => (await field(page, 'Total').locator('dd').textContent())?.trim();
    for (const [window, sum] of [
      ['10000', '45,000'],
      ['10', '45'],
      ['5000', '22,500'],
    ]) {
      await page.choice('Window shown').fill(window);
      assert.equal(await total(), sum);
    }
    await page.page.locator('h1').click();
    await page.page.keyboard.press('End');
    assert.equal(await page.button('Step').isDisabled(), true, 'a recording ends');
    await page.button('Take over').click();
    await page.button('Step').click();
    await page.view.locator('.figure', { hasText: 'Total' }).getByText('45,009').waitFor();
  });
});

describe('llmserve', () => {
  it('finds a profile by typing, and keeps the one before when there is none of that name', async () => {
    const page = await open('llmserve', '?policy=hand&seed=1');
    await page.view.locator('.options-menu summary').click();
    const profile = page.view.getByLabel('Profile');
    await page.view.locator('datalist option').nth(100).waitFor({ state: 'attached' });
    await profile.fill('mi300x-192gb-qwen3-8b');
    await profile.press('Enter');
    await page.view.getByText('Scenario (1)').waitFor();
    await page.untilWindow(0);
    await profile.fill('h100');
    await profile.press('Enter');
    assert.equal(await profile.evaluate((input: HTMLInputElement) => input.validity.valid), false);
    assert.equal(new URL(page.page.url()).searchParams.get('option.profile'), 'mi300x-192gb-qwen3-8b');
    await profile.fill('');
    await profile.press('Enter');
    await page.view.getByText('Scenario', { exact: true }).waitFor();
  });
});

describe('fleet', () => {
  it('shows the replicas and the dollars, takes what a person asks for, and grades', async () => {
    const page = await open('fleet', '?task=flash_crowds&policy=hand&seed=3');
    const fleet = page.view.getByRole('region', { name: 'The fleet now' });
    const replicas = fleet.getByRole('list', { name: 'Replicas' }).getByRole('listitem');
    await eventually(
      () => replicas.count(),
      (cards) => cards === 4,
    );
    await page.view.getByRole('slider', { name: 'Replicas', exact: true }).press('End');
    await page.button('Step').click();
    await page.untilWindow(1);
    await eventually(
      () => replicas.count(),
      (cards) => cards === 16,
    );
    assert.match((await replicas.last().getAttribute('aria-label')) ?? '', /Starts, ready in \d+/);
    await fleet.locator('.figure', { hasText: 'Bill' }).getByText('$48').waitFor();
    await fleet.locator('.figure', { hasText: 'Wasted' }).getByText('$').waitFor();
    assert.match((await replicas.first().getAttribute('aria-label')) ?? '', /\d+ requests sent to it/);
    const chart = (name: string) => page.view.getByRole('figure', { name, exact: true });
    for (const name of ['Demand and capacity', 'Dollars', 'Time to first token']) await chart(name).waitFor();
    assert.match((await chart('Demand and capacity').textContent()) ?? '', /Capacity\d/);
    assert.equal(await chart('Replicas').count(), 0, 'the others are shown on demand');
    await page.view.getByText('More charts').click();
    await chart('Replicas').waitFor();
    await chart('Prefix cache hit rate').waitFor();
    await (await page.open('Keys and terms')).getByText('A fleet, from left to right.').waitFor();
    await page.page.keyboard.press('Escape');
    await page.untilOver();
  });
});

describe('inferencegym', () => {
  it('shows the server, locks the knobs that the task masks, and grades', async () => {
    const page = await open('inferencegym', '?task=1&policy=hand&seed=2');
    await page.view.getByRole('region', { name: 'The server now' }).waitFor();
    assert.equal(await page.choice('Batch size').isDisabled(), false);
    assert.equal(await page.choice('Split the GPUs').isDisabled(), true);
    assert.equal(await page.view.getByText('Masked: this task holds it at its default.').count(), 3);
    await page.choice('Batch size').press('End');
    await page.button('Step').click();
    await page.untilWindow(1);
    assert.ok((await page.figure('Requests')) > 0);
    await page.choice('Played by').selectOption('baseline');
    await page.untilOver();
    assert.match((await page.score.locator('strong').textContent()) ?? '', /^0\.\d{3}$/);
    const parts = await page.view.getByRole('figure', { name: 'Reward' }).locator('dt').allTextContents();
    assert.ok(parts.includes('Latency') && parts.includes('Reward'), parts.join());
  });
});

describe('a task of llmserve of one’s own that masks knobs', () => {
  it('locks them at its default, whatever another task had', async () => {
    const server = await serveForTest(['--task', MASKED_TASK]);
    const page = await openPage(browser, `${server.url}/web/?task=static_workload&policy=hand&seed=2`);
    const precision = page.view.getByRole('radiogroup', { name: 'Precision' });
    await page.untilWindow(0);
    await precision.getByLabel('INT4').check();
    assert.equal((await page.step()).action.quantization_tier, 'INT4');
    await page.choice('Task').selectOption('fixed_arrangement');
    await page.view.getByText('Masked: this task holds it at its default.').first().waitFor();
    assert.equal(await page.view.getByText('Masked: this task holds it at its default.').count(), 2);
    assert.equal(await precision.getByLabel('INT4').isDisabled(), true);
    assert.equal(await page.choice('Split the GPUs').isDisabled(), true);
    assert.equal(await page.choice('Batch cap').isDisabled(), false);
    await page.untilIdle();
    await page.choice('Batch cap').press('End');
    const { action } = await page.step();
    assert.deepEqual([action.batch_cap, action.quantization_tier], [512, 'FP16']);
    await page.choice('Played by').selectOption('heuristic');
    await page.untilOver();
  });
});

describe('the memory limit of a task of inferencegym', () => {
  it('is told with its effect where the server goes over it, and where it did', async () => {
    const page = await open('inferencegym', '?task=3&policy=hand&seed=2');
    const limit = page.view.locator('.over-limit');
    assert.equal(await limit.count(), 0);
    await page.step();
    assert.equal(await page.figure('GPU memory'), 39.9);
    assert.match(
      (await limit.textContent()) ?? '',
      /^1\.9\d?.GB over the limit of the task\. It costs score, not service/,
    );
    await page.view.getByText('of 38.0 GB').waitFor();
    await page.choice('KV memory').press('Home');
    await page.step();
    assert.ok((await page.figure('GPU memory')) < 38);
    assert.match((await limit.textContent()) ?? '', /over the limit earlier in this episode/);
    await page.page.locator('h1').click();
    await page.page.keyboard.press('Home');
    await limit.waitFor({ state: 'detached' });
  });
});

describe('the readme of an environment', () => {
  it('names the address of the page’s own server', async () => {
    const proxy = await proxyForTest();
    for (const path of ['', 'inferencegym/', 'benchmark/']) {
      const page = await openPage(browser, `${proxy.url}/${path}web/?policy=hand`);
      await page.untilWindow(0);
      const code = page.panel('Readme').locator('pre', { hasText: 'GenericEnvClient' });
      await page.open('Readme');
      const url = `${proxy.url}/${path}`.replace(/\/$/, '');
      assert.match((await code.textContent()) ?? '', new RegExp(`base_url="${url}"`));
      assert.doesNotMatch((await page.panel('Readme').textContent()) ?? '', /localhost|7860/);
      await page.close();
    }
  });
});

describe('benchmark', () => {
  it('is played by hand, and offers nothing that it cannot keep', async () => {
    const page = await open('benchmark', '?policy=hand');
    assert.equal(await page.choice('Compare with').count(), 0, 'its episodes cannot be played alike');
    await eventually(
      () => page.view.getByText('Drawn from the first window on').count(),
      (count) => count === 3,
    );
    assert.match(
      (await field(page, 'Host url').textContent()) ?? '',
      new RegExp(new URL(page.page.url()).origin),
    );
    await page.button('Step').click();
    await page.untilWindow(1);
    assert.equal(await page.view.getByText('Drawn from the first window on').count(), 0);
    const panel = await page.open('Share');
    await panel.getByLabel('Link to the scenario').waitFor();
    assert.equal(await panel.getByLabel('Link to the episode').count(), 0);
  });

  it('fills the width of a phone, no more and no less', async () => {
    const page = await open('benchmark', '?policy=hand', { viewport: { width: 390, height: 844 } });
    const charts = page.view.getByRole('figure');
    await charts.first().waitFor();
    assert.equal(await page.page.evaluate(() => document.documentElement.scrollWidth), 390);
    for (const chart of await charts.all()) {
      const { width } = (await chart.boundingBox())!;
      assert.ok(width > 360, `a chart is ${width} px wide`);
    }
  });
});

describe('several environments on one port', () => {
  it('are chosen from one another, under a path prefix too', async () => {
    const proxy = await proxyForTest();
    const viewport = { width: 1280, height: 800 };
    const page = await openPage(browser, `${proxy.url}/web/?policy=hand`, { viewport });
    for (const [name, path] of [
      ['inferencegym', '/gym/inferencegym/web/'],
      ['benchmark', '/gym/benchmark/web/'],
      ['llmserve', '/gym/web/'],
    ]) {
      await page.view.getByText('Scenario', { exact: true }).click();
      await page.choice('Environment').selectOption({ label: await versioned(page, name) });
      await page.page.waitForURL((url) => url.pathname === path);
      await page.untilWindow(0);
      await page.view.locator('.brand').getByText(name).waitFor();
      const bar = await page.view.locator('.top-bar').boundingBox();
      assert.ok(bar!.height < 60, `the top bar of ${name} takes one row, not ${bar?.height} px`);
      assert.ok(await page.view.getByText('Readme', { exact: true }).isVisible(), 'icons have labels');
    }
    assert.deepEqual(
      proxy.strays.filter((stray) => stray !== '/favicon.ico'),
      [],
    );
  });

  it('one alone is named, without a choice', async () => {
    const page = await openServed('benchmark', '?policy=hand');
    await page.view.getByText('Scenario', { exact: true }).click();
    await page.view.locator('.option').getByText('benchmark').waitFor();
    assert.equal(await page.choice('Environment').count(), 0);
  });
});

/** The name of an environment as the choice has it, once it is there. */
async function versioned(page: ConsolePage, name: string): Promise<string> {
  const option = page.choice('Environment').locator('option', { hasText: name });
  await option.waitFor({ state: 'attached' });
  return (await option.textContent()) ?? '';
}
