import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchChromium } from './chromium.ts';
import { type ConsolePage, openConsole } from './console-page.ts';
import { type ReverseProxy, startReverseProxy } from './reverse-proxy.ts';
import { type ServeProcess, startServe } from './serve-process.ts';

let browser: Browser;
let server: ServeProcess;
let proxy: ReverseProxy;
let shownPage: ConsolePage;

before(async () => {
  [browser, server] = await Promise.all([launchChromium(), startServe()]);
  proxy = await startReverseProxy(server.origin);
});
after(async () => {
  await browser?.close();
  proxy?.close();
  await server?.kill();
});
afterEach(async () => {
  shownPage.assertNoFaults();
  await shownPage.close();
});

async function open(query: string): Promise<ConsolePage> {
  shownPage = await openConsole(browser, `${proxy.url}/web/${query}`);
  return shownPage;
}

/** The bodies of the steps that reached the server, oldest first. */
function stepsReceived(): { session_id: string; action: Record<string, unknown> }[] {
  return proxy.passed.filter(({ path }) => path === '/step').map(({ body }) => JSON.parse(body));
}

async function stepsPlayedOnServer(): Promise<number> {
  const { session_id } = stepsReceived().at(-1)!;
  const answer = await fetch(`${server.origin}/state?session_id=${session_id}`);
  return ((await answer.json()) as { step_count: number }).step_count;
}

describe('a policy', () => {
  it('plays to the end by itself, and the score that the server gives appears', async () => {
    const page = await open('?task=static_workload&seed=3&policy=heuristic');
    const grade = page.page.waitForResponse((response) => response.url().endsWith('/grader'));
    await page.choice('Speed').selectOption('60');
    await page.score.waitFor();
    const { score, feedback } = (await (await grade).json()) as { score: number; feedback: string };
    const shown = (await page.score.textContent()) ?? '';
    assert.ok(shown.includes(score.toFixed(3)), shown);
    assert.ok(shown.includes(feedback), shown);
    const tasks = (await (await fetch(`${server.origin}/tasks`)).json()) as {
      tasks: { id: string; windows: number }[];
    };
    assert.equal(await page.window(), tasks.tasks.find(({ id }) => id === 'static_workload')?.windows);
  });

  it('plays the same episode again for the same seed', async () => {
    const page = await open('?task=bursty_workload&seed=11&policy=random');
    const score = async () => {
      await page.choice('Speed').selectOption('60');
      await page.score.waitFor();
      return page.score.locator('strong').textContent();
    };
    const first = await score();
    await page.button('Same again').click();
    await page.score.waitFor({ state: 'detached' });
    assert.equal(await score(), first);
  });

  it('shows on the knobs what it chose, and hands them over in mid-episode', async () => {
    const page = await open('?task=adversarial_multitenant&seed=2&policy=heuristic');
    await page.untilWindow(3);
    assert.equal(await page.choice('Batch cap').isDisabled(), true);
    await page.button('Take over').click();
    const left = await page.choice('Batch cap').getAttribute('aria-valuetext');
    const window = await page.window();
    await page.button('Step').click();
    await page.untilWindow(window + 1);
    assert.equal(`${stepsReceived().at(-1)?.action.batch_cap} requests a GPU`, left);
  });
});

describe('by hand', () => {
  it('a step plays one window, and space plays and pauses', async () => {
    const page = await open('?task=static_workload&seed=1&policy=hand');
    await page.untilWindow(0);
    await page.page.keyboard.press('ArrowRight');
    await page.untilWindow(1);
    await page.button('Step').click();
    await page.untilWindow(2);
    await page.page.keyboard.press('ArrowRight');
    await page.untilWindow(3);
    assert.equal(await stepsPlayedOnServer(), 3);

    await page.page.locator('body').click({ position: { x: 2, y: 2 } });
    await page.page.keyboard.press('Space');
    await page.button('Pause').waitFor();
    await page.untilWindow(6);
    await page.page.keyboard.press('Space');
    await page.button('Play').waitFor();
    const stopped = await stepsPlayedOnServer();
    await page.untilWindow(stopped);
    await page.button('Step').click();
    await page.untilWindow(stopped + 1);
    assert.equal(await stepsPlayedOnServer(), stopped + 1);
  });

  it('sends the knobs as they were turned', async () => {
    const page = await open('?task=adversarial_multitenant&seed=1&policy=hand');
    await page.untilWindow(0);
    await page.choice('Batch cap').fill('0');
    await page.choice('KV memory').press('Home');
    await page.choice('Speculation').press('End');
    await page.choice('INT4').check();
    await page.choice('Split the GPUs').check();
    await page.choice('Interactive first').check();
    await page.button('Step').click();
    await page.untilWindow(1);
    assert.deepEqual(stepsReceived().at(-1)?.action, {
      batch_cap: 1,
      kv_budget_fraction: 0.1,
      speculation_depth: 8,
      quantization_tier: 'INT4',
      prefill_decode_split: true,
      priority_routing: true,
    });
  });

  it('starts from the default action of the task', async () => {
    const page = await open('?task=adversarial_multitenant&seed=1&policy=hand');
    await page.untilWindow(0);
    await page.button('Step').click();
    await page.untilWindow(1);
    const { tasks } = (await (await fetch(`${server.origin}/tasks`)).json()) as {
      tasks: { id: string; default_action: unknown }[];
    };
    assert.deepEqual(
      stepsReceived().at(-1)?.action,
      tasks.find(({ id }) => id === 'adversarial_multitenant')?.default_action,
    );
  });

  it('another task or seed starts another episode, and the address remembers both', async () => {
    const page = await open('?task=static_workload&seed=1&policy=hand');
    await page.untilWindow(0);
    await page.button('Step').click();
    await page.untilWindow(1);
    await page.choice('Task').selectOption('bursty_workload');
    await page.choice('Seed').fill('42');
    await page.choice('Seed').press('Enter');
    await page.page.waitForURL(/seed=42/);
    const reset = proxy.passed.filter(({ path }) => path === '/reset').at(-1);
    const { task_id, seed } = JSON.parse(reset?.body ?? '{}');
    assert.deepEqual({ task_id, seed }, { task_id: 'bursty_workload', seed: 42 });
    assert.match(page.page.url(), /task=bursty_workload&seed=42&policy=hand/);
  });
});

describe('the charts', () => {
  it('draw the episode, and the pointed window is read out', async () => {
    const page = await open('?task=bursty_workload&seed=5&policy=heuristic');
    await page.choice('Speed').selectOption('60');
    await page.score.waitFor();
    const chart = page.view.getByRole('figure', { name: 'Requests in the server' });
    const plot = chart.locator('.u-over');
    await plot.scrollIntoViewIfNeeded();
    const box = (await plot.boundingBox())!;
    await page.page.mouse.move(box.x + 2, box.y + box.height / 2);
    assert.ok((await page.window()) <= 2);
    await page.page.mouse.move(box.x + box.width - 2, box.y + box.height / 2);
    assert.ok((await page.window()) > 100);
    const painted = await chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
      const colors = new Set<number>();
      for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] === 255) colors.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      return colors.size;
    });
    assert.ok(painted > 3, `${painted} colours`);
  });
});
