import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Response } from 'playwright-core';
import { narrate } from '../src/llm-server/narration.ts';
import { type Frame, firstFrame, nextFrame } from '../src/state/frame.ts';
import { eventually } from './console-page.ts';
import { closeAfterTest, openPage, startBoth, startReverseProxy } from './start.ts';

const { browser, server } = await startBoth();
const proxy = await startReverseProxy(server.url);
after(() => proxy.close());
const open = (query: string) => openPage(browser, `${proxy.url}/web/${query}`);

/** The bodies of the steps that reached the server, oldest first. */
function stepsReceived(): { session_id: string; action: Record<string, unknown> }[] {
  return proxy.passed.filter(({ path }) => path === '/step').map(({ body }) => JSON.parse(body));
}

async function stepsPlayedOnServer(): Promise<number> {
  const { session_id } = stepsReceived().at(-1)!;
  const answer = await fetch(`${server.url}/state?session_id=${session_id}`);
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
    const anchors = (await page.score.getByRole('img').getAttribute('aria-label')) ?? '';
    assert.match(anchors, /^Scores on the same traffic: Default 0\.20, .*Sees the future 0\.95$/);
    const standing = new RegExp(`${score.toFixed(3)} is (between .* and|above) .*\\(0\\.\\d\\d\\)`);
    assert.match(shown, standing);
    const tasks = (await (await fetch(`${server.url}/tasks`)).json()) as {
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

  it('begins when the page is shown, however late its parts come', async () => {
    const context = await browser.newContext();
    closeAfterTest(() => context.close());
    const { promise: late, resolve: come } = Promise.withResolvers<void>();
    await context.route('**/assets/run-cards-*.js', async (route) => {
      await late;
      await route.continue();
    });
    const page = await context.newPage();
    let asked = 0;
    await page.route('**/policies/random/step', (route) => {
      asked++;
      return route.continue();
    });
    await page.goto(`${server.url}/web/?task=static_workload&policy=random&policy=heuristic`);
    await page.getByText('Window', { exact: true }).waitFor({ state: 'attached' });
    await pause(500);
    assert.equal(asked, 0);
    come();
    await page.locator('main[aria-busy=false]').waitFor();
    await eventually(
      () => asked,
      (count) => count > 0,
    );
  });

  it('shows on the knobs what it chose, and hands them over in mid-episode', async () => {
    const page = await open('?task=adversarial_multitenant&seed=2&policy=heuristic');
    await page.choice('Speed').selectOption('1');
    await page.untilWindow(3);
    assert.equal(await page.choice('Batch cap').isDisabled(), true);
    await page.button('Take over').click();
    const left = await page.choice('Batch cap').getAttribute('aria-valuetext');
    const { action } = await page.step();
    assert.equal(`${action.batch_cap} requests a GPU`, left);
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
    await page.untilIdle();
    const stopped = await stepsPlayedOnServer();
    await page.untilWindow(stopped);
    await page.step();
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
    const { action } = await page.step();
    assert.deepEqual(action, {
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
    const { action } = await page.step();
    const { tasks } = (await (await fetch(`${server.url}/tasks`)).json()) as {
      tasks: { id: string; default_action: unknown }[];
    };
    assert.deepEqual(action, tasks.find(({ id }) => id === 'adversarial_multitenant')?.default_action);
  });

  it('another task or seed starts another episode, and the address remembers both', async () => {
    const page = await open('?task=static_workload&seed=1&policy=hand');
    await page.untilWindow(0);
    await page.step();
    await page.choice('Task').selectOption('bursty_workload');
    const reset = page.page.waitForRequest(
      (request) => request.url().endsWith('/reset') && request.postDataJSON().seed === 42,
    );
    await page.choice('Seed').fill('42');
    await page.choice('Seed').press('Enter');
    const { task_id } = (await reset).postDataJSON();
    assert.equal(task_id, 'bursty_workload');
    await page.page.waitForURL(/task=bursty_workload&seed=42&policy=hand/);
  });
});

describe('winding back', () => {
  it('shows earlier windows by slider, keys and charts, and plays on from there', async () => {
    const page = await open('?task=static_workload&seed=2&policy=heuristic');
    await page.untilOver();
    const { keyboard, mouse } = page.page;
    await mouse.move(0, 0);
    const windows = await page.window();
    await page.page.locator('h1').click();
    const isAt = (wanted: number) => page.untilShown((window) => window === wanted);
    await keyboard.press('ArrowLeft');
    await isAt(windows - 1);
    await keyboard.press('Home');
    await isAt(0);
    await keyboard.press('ArrowRight');
    await isAt(1);
    await keyboard.press('End');
    await isAt(windows);

    await page.choice('Window shown').fill('20');
    await isAt(20);
    const plot = page.view.getByRole('figure', { name: 'Reward' }).locator('.u-over');
    // A chart is drawn once it is on the screen, and only then knows what is pointed at.
    await eventually(
      async () => {
        await plot.click({ position: { x: 10, y: 30 } });
        await mouse.move(0, 0);
        return page.window();
      },
      (window) => window > 0 && window < 10,
    );

    const played = stepsReceived().length;
    await page.button('Play').click();
    await page.untilWindow(windows);
    assert.equal(stepsReceived().length, played, 'what was played is shown, not played again');
  });

  it('and playing on from an earlier window starts another course of events there', async () => {
    const page = await open('?task=static_workload&seed=2&policy=hand');
    await page.untilWindow(0);
    for (let window = 1; window <= 5; window++) await page.step();
    await page.choice('Window shown').fill('2');
    await page.button('Play on from here').click();
    await page.button('Back to now').waitFor({ state: 'detached' });
    assert.equal(await page.window(), 2);
    await page.choice('INT4').check();
    const { action } = await page.step();
    assert.equal(action.quantization_tier, 'INT4');
    assert.equal(await stepsPlayedOnServer(), 3);
  });
});

describe('runs side by side', () => {
  it('play the same episode in step, each with its score, up to four', async () => {
    const page = await open('?task=static_workload&seed=4&policy=heuristic&policy=default');
    const cards = page.view.getByRole('article');
    await page.choice('Compare with').selectOption('random');
    await page.choice('Compare with').selectOption('default');
    await page.view.getByRole('article').nth(3).waitFor();
    assert.equal(await page.choice('Compare with').count(), 0, 'four are all');
    await page.untilOver();
    await cards.nth(3).getByText('Score').waitFor();
    const returns = await cards.locator('.figure', { hasText: 'Return' }).locator('dd').allTextContents();
    assert.equal(returns.length, 4);
    assert.equal(returns[1], returns[3], 'the same policy on the same traffic');
    assert.notEqual(returns[0], returns[2]);
    await page.page.waitForURL(/policy=heuristic&policy=default&policy=random&policy=default/);
    const resets = proxy.passed.filter(({ path }) => path === '/reset').slice(-4);
    assert.equal(new Set(resets.map(({ body }) => JSON.parse(body).seed)).size, 1);

    await page.page.keyboard.press('2');
    await cards.nth(1).getByRole('button', { name: 'Shown' }).waitFor();
    const legend = page.view.getByRole('figure', { name: 'Reward' }).locator('dt');
    await eventually(
      () => legend.count(),
      (count) => count === 4,
    );
    await cards
      .nth(0)
      .getByRole('button', { name: /^Remove/ })
      .click();
    await eventually(
      () => cards.count(),
      (count) => count === 3,
    );
  });

  it('let a person play against a policy', async () => {
    const page = await open('?task=static_workload&seed=4&policy=hand&policy=heuristic');
    await page.untilWindow(0);
    await page.step();
    await page.untilIdle();
    await page.step();
    await page.untilIdle();
    assert.equal(await stepsPlayedOnServer(), 2);
    const policySteps = proxy.passed.filter(({ path }) => path === '/policies/heuristic/step').slice(-2);
    assert.deepEqual(
      policySteps.map(({ body }) => JSON.parse(body).steps),
      [1, 1],
    );
  });
});

describe('the scenario', () => {
  it('is chosen from what the environment offers, sent with the reset and kept in the address', async () => {
    const page = await open('?task=static_workload&seed=1&policy=heuristic');
    const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      paths: Record<string, { post: { requestBody: { content: Record<string, { schema: unknown }> } } }>;
    };
    assert.match(JSON.stringify(paths['/reset'].post.requestBody), /"shift"/);
    await page.untilWindow(1);
    await page.view.getByText('Scenario', { exact: false }).first().click();
    const shift = page.choice('Shift');
    const wanted = await shift.locator('option').nth(1).textContent();
    const reset = page.page.waitForRequest((request) => request.url().endsWith('/reset'));
    await shift.selectOption({ index: 1 });
    assert.equal((await reset).postDataJSON().shift, wanted);
    await page.page.waitForURL(/option\.shift=/);
  });
});

describe('the menu of the scenario', () => {
  it('closes by Escape, and by a click or by Tab beside it', async () => {
    const page = await open('?task=static_workload&seed=1&policy=hand');
    await page.untilWindow(0);
    const { keyboard } = page.page;
    const summary = page.view.locator('.options-menu summary');
    const menu = page.view.locator('.options-menu .menu');
    const openMenu = async () => {
      await summary.click();
      await menu.waitFor();
    };
    const isFocused = () => summary.evaluate((element) => element === document.activeElement);

    await openMenu();
    await page.choice('Shift').focus();
    await keyboard.press('Escape');
    await menu.waitFor({ state: 'detached' });
    assert.equal(await isFocused(), true, 'the focus goes back to what opened it');

    await openMenu();
    await menu.click({ position: { x: 5, y: 5 } });
    assert.equal(await menu.count(), 1, 'a click inside leaves it open');
    await page.view.locator('h1').click();
    await menu.waitFor({ state: 'detached' });

    await openMenu();
    await page.button('Share').focus();
    await menu.waitFor({ state: 'detached' });
  });
});

describe('the question mark', () => {
  it('does the same as a key and as a button', async () => {
    const page = await open('?task=static_workload&seed=1&policy=hand');
    await page.untilWindow(0);
    const shown: string[] = [];
    for (const ask of [() => page.page.keyboard.press('?'), () => page.button('Keys and terms').click()]) {
      await ask();
      await page.panel('Keys and terms').getByText('Play and pause').waitFor();
      shown.push(await page.view.getByRole('dialog').innerText());
      await page.page.keyboard.press('Escape');
      await page.panel('Keys and terms').waitFor({ state: 'detached' });
    }
    assert.equal(shown[0], shown[1]);
  });

  it('opens its panel in the moment in which another one closes', async () => {
    const page = await open('?task=static_workload&seed=1&policy=hand');
    await page.untilWindow(0);
    const shared = await page.open('Share');
    await shared.evaluate((dialog) => {
      (dialog as HTMLDialogElement).close();
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
    });
    await page.panel('Keys and terms').getByText('Play and pause').waitFor();
  });
});

describe('an address that asks for what there is not', () => {
  it('is told part by part, and the page waits to be started', async () => {
    const page = await open('?task=nope&seed=-3&policy=wat&option.foo=1&option.rate_scale=fast');
    await page.untilWindow(0);
    await page.problem.waitFor();
    const said = (await page.problem.textContent()) ?? '';
    for (const part of [
      'task “nope”',
      'got “-3”',
      'policy “wat”',
      'option “foo”',
      'got “fast”',
      'static_workload',
    ])
      assert.ok(said.includes(part), `${part} in ${said}`);
    assert.equal(await page.window(), 0);
    await page.button('Close').click();
    await page.problem.waitFor({ state: 'detached' });
    await page.button('Play').click();
    await page.untilWindow(1);
  });
});

describe('while a planner computes', () => {
  it('the page says so, and not that it waits for the person', async () => {
    const page = await open('?policy=mpc&task=static_workload&seed=1');
    const sentence = page.view.locator('.sentence');
    const gate = Promise.withResolvers<void>();
    await page.page.route('**/policies/*/step', async (route) => {
      await gate.promise;
      await route.continue();
    });
    await page.page.reload();
    await sentence.getByText('Starting.').waitFor();
    assert.match((await sentence.textContent()) ?? '', /first window is being computed, played by Planner/);
    await page.view.locator('[aria-busy=true] > .busy-bar').waitFor({ state: 'attached' });
    gate.resolve();
    await page.untilWindow(1);
    assert.doesNotMatch((await sentence.textContent()) ?? '', /Starting/);
  });

  it('a run that joins says how far it is, and the others can be watched', async () => {
    const page = await open('?task=static_workload&seed=1&policy=default');
    await page.untilOver();
    const gate = Promise.withResolvers<void>();
    await page.page.route('**/policies/heuristic/step', async (route) => {
      await gate.promise;
      await route.continue();
    });
    await page.choice('Compare with').selectOption('heuristic');
    const added = page.view.getByRole('article').nth(1);
    await added.getByText('Joining.').waitFor();
    assert.match((await added.locator('.sentence').textContent()) ?? '', /0 of \d+ windows played/);
    assert.equal(await page.choice('Compare with').isDisabled(), true);
    gate.resolve();
    await added.getByText('Episode over.').waitFor();
    assert.equal(await page.choice('Compare with').isDisabled(), false);
  });
});

describe('a first visit', () => {
  it('shows three charts, and the others when they are asked for', async () => {
    const page = await open('?task=static_workload&policy=hand');
    await page.untilWindow(0);
    const charts = page.view.locator('figure.chart');
    assert.equal(await charts.count(), 3);
    await page.view.getByText('More charts').click();
    await page.view.getByRole('figure', { name: 'GPU memory', exact: true }).waitFor();
  });
});

describe('explanations', () => {
  it('tell why the planner chose what it chose, for the window that is shown', async () => {
    const page = await open('?task=static_workload&seed=1&policy=mpc');
    await page.untilWindow(2);
    const why = page.view.getByRole('region', { name: 'Why this choice' });
    await why.getByText('Chosen').waitFor();
    assert.ok((await why.getByRole('listitem').count()) > 1, 'with alternatives');
    assert.match((await why.getByRole('listitem').first().textContent()) ?? '', /[+−]\d+\.\d\d/);
    await page.choice('Window shown').fill('0');
    await why.waitFor({ state: 'detached' });
  });

  it('tell the meaning and unit of a number that is pointed at or listed', async () => {
    const page = await open('?task=static_workload&policy=hand');
    await page.untilWindow(0);
    const { observation } = (await (await fetch(`${server.url}/schema`)).json()) as {
      observation: { properties: Record<string, { description: string }> };
    };
    const meaning = observation.properties.estimated_cost_per_1k.description;
    await page.view.locator('dt', { hasText: 'For 1,000' }).hover();
    await page.view.locator('.tooltip', { hasText: meaning }).waitFor();
    await page.page.keyboard.press('?');
    await page.panel('Keys and terms').getByText(meaning).waitFor();
    await page.page.keyboard.press('Escape');
    await page.panel('Keys and terms').waitFor({ state: 'detached' });
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
    const pointedAt = async (x: number) => {
      // A chart is drawn once it is on the screen, and only then knows what is pointed at.
      await page.page.mouse.move(x, box.y + box.height / 2 - 1);
      await page.page.mouse.move(x, box.y + box.height / 2);
      return page.window();
    };
    await eventually(
      () => pointedAt(box.x + 2),
      (window) => window <= 2,
    );
    await eventually(
      () => pointedAt(box.x + box.width - 2),
      (window) => window > 100,
    );
    const painted = await chart.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
      const colors = new Set<number>();
      for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] === 255) colors.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      return colors.size;
    });
    assert.ok(painted > 3, `${painted} colours`);
  });

  it('are zoomed by keys and by a drag, which is no click on a window', async () => {
    const page = await open('?task=static_workload&seed=4&policy=heuristic');
    await page.untilOver();
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
    assert.equal(await page.button('Back to now').count(), 0);
  });
});

/** Displayed frames in which the sentence is read. */
const SAMPLES = 50;

interface Sample {
  readonly window: number;
  readonly waiting: string;
  readonly sentence: string;
}

describe('the sentence on the server', () => {
  it('is of the same window as the figures, in every displayed frame while it plays', async () => {
    const query = '?task=adversarial_multitenant&seed=7&policy=heuristic';
    const page = await openPage(browser, `${server.url}/web/${query}`, { reducedMotion: 'reduce' });
    const frames: Frame[] = [];
    const collect = async (response: Response) => {
      const { pathname } = new URL(response.url());
      if (pathname === '/reset') frames.splice(0, Infinity, firstFrame(await response.json()));
      if (pathname !== '/policies/heuristic/step') return;
      for (const step of (await response.json()).steps) frames.push(nextFrame(frames.at(-1)!, step));
    };
    // A response that the closing page cuts off has no body; no sample is of its windows.
    page.page.on('response', (response) => void collect(response).catch(() => {}));
    await page.untilWindow(0);
    await page.choice('Speed').selectOption('8');
    await page.button('Play').click();
    const samples = await page.page.evaluate(
      (wanted) =>
        new Promise<Sample[]>((resolve) => {
          const text = (selector: string) => document.querySelector(selector)?.textContent ?? '';
          const figure = (label: string) =>
            [...document.querySelectorAll('dt')].find(({ textContent }) => textContent === label)
              ?.nextElementSibling?.textContent ?? '';
          const taken: Sample[] = [];
          const take = () => {
            const window = Number.parseInt(figure('Window'), 10);
            if (window > 0 && window !== taken.at(-1)?.window)
              taken.push({ window, waiting: figure('In the queue'), sentence: text('.sentence') });
            if (taken.length < wanted) requestAnimationFrame(take);
            else resolve(taken);
          };
          requestAnimationFrame(take);
        }),
      SAMPLES,
    );
    await page.button('Pause').click();
    await page.untilIdle();
    assert.equal(samples.length, SAMPLES);
    for (const { window, waiting, sentence } of samples) {
      const { headline, detail } = narrate(frames[window], frames[window - 1])!;
      assert.equal(sentence, `${headline} ${detail}`, `window ${window}`);
      const queue = /([\d,]+) requests? (?:is|are) waiting/.exec(sentence);
      if (queue) assert.equal(queue[1], waiting, `window ${window}`);
    }
  });
});
