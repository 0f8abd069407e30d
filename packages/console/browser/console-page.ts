import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Frame, Locator, Page, Request } from 'playwright-core';

/** Longest wait for anything of the page: a guard against hanging, far beyond what a busy machine needs. */
const LONGEST_WAIT_MS = 120_000;

/** The console in a browser, in the words of a person who looks at it. */
export class ConsolePage {
  readonly page: Page;
  /** The console: the page itself, or the frame that it is embedded in. */
  readonly view: Page | Frame;
  readonly faults: string[];
  /** Faults that are expected. */
  expected: RegExp | undefined;
  readonly #underWay = new Set<Request>();

  constructor(page: Page, view: Page | Frame, faults: string[]) {
    this.page = page;
    this.view = view;
    this.faults = faults;
    page.setDefaultTimeout(LONGEST_WAIT_MS);
    page.on('request', (request) => this.#underWay.add(request));
    for (const end of ['requestfinished', 'requestfailed'] as const)
      page.on(end as 'requestfinished', (request) => this.#underWay.delete(request));
  }

  button(name: string): Locator {
    return this.view.getByRole('button', { name, exact: true });
  }

  /** The choice with this label above or beside it. */
  choice(label: string): Locator {
    return this.view.getByLabel(label, { exact: true });
  }

  /** The score, once the server has graded the episode. */
  get score(): Locator {
    return this.view.locator('section[aria-label=Score][aria-busy=false]');
  }

  get problem(): Locator {
    return this.view.getByRole('alert');
  }

  /** The panel with this name, once it is open. */
  panel(name: string): Locator {
    return this.view.getByRole('dialog', { name, exact: true });
  }

  /** Opens a panel from the top bar and waits for it. */
  async open(name: string): Promise<Locator> {
    await this.button(name).click();
    const panel = this.panel(name);
    await panel.waitFor();
    return panel;
  }

  /** Plays at full speed until the score is there. */
  async untilOver(): Promise<void> {
    await this.untilWindow(0);
    await this.choice('Speed').selectOption('60');
    if (await this.button('Play').count()) await this.button('Play').click();
    await this.score.waitFor();
  }

  /** Totals of all played windows: equal texts mean equal episodes. */
  async totals(): Promise<string> {
    return (await this.score.locator('.breakdown').textContent()) ?? '';
  }

  /** The window that the page shows; 0 is the reset. */
  async window(): Promise<number> {
    const text = await this.windowCounter.textContent();
    return Number.parseInt(text ?? '', 10);
  }

  /** The number with this label among the figures of the server. */
  async figure(label: string): Promise<number> {
    const text = await this.view
      .locator('dt', { hasText: label })
      .first()
      .locator('+ dd .value')
      .textContent();
    return Number.parseFloat((text ?? '').replaceAll(',', ''));
  }

  /** Waits until the page is shown, at window `least` or a later one. */
  async untilWindow(least: number): Promise<void> {
    await this.view.waitForFunction(
      (wanted) => {
        if (document.querySelector('main')?.ariaBusy === 'true') return false;
        const name = [...document.querySelectorAll('dt')].find((term) => term.textContent === 'Window');
        return Number.parseInt(name?.nextElementSibling?.textContent ?? '', 10) >= wanted;
      },
      least,
      { polling: 20 },
    );
  }

  /** Plays one window by hand; what was sent, once the server has answered. */
  async step(): Promise<{ session_id: string; action: Record<string, unknown> }> {
    const window = await this.window();
    const answer = this.page.waitForResponse(
      (response) => /^(\/\w+)?\/step$/.test(new URL(response.url()).pathname),
      // Later than that of the click, which tells why it could not be done.
      { timeout: 2 * LONGEST_WAIT_MS },
    );
    const [response] = await Promise.all([answer, this.button('Step').click()]);
    const sent = response.request().postDataJSON();
    await this.untilWindow(window + 1);
    return sent;
  }

  /** Waits until the page has an answer to all that it has asked. */
  async untilIdle(): Promise<void> {
    await eventually(
      () => this.#underWay.size,
      (count) => count === 0,
    );
  }

  /** Waits until the page shows a window of which this is so. */
  untilShown(isRight: (window: number) => boolean): Promise<number> {
    return eventually(() => this.window(), isRight);
  }

  /** Fails when the page reported an error or asked another origin for something. */
  assertNoFaults(): void {
    const unexpected = this.faults.filter((fault) => !this.expected?.test(fault));
    assert.deepEqual(unexpected, []);
  }

  close(): Promise<void> {
    return this.page.context().close();
  }

  private get windowCounter(): Locator {
    return this.view.locator('dt', { hasText: /^Window$/ }).locator('+ dd');
  }
}

/** Reads until what is read is right, and gives it. */
export async function eventually<T>(read: () => T | Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  const end = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const value = await read();
    if (isRight(value)) return value;
    if (performance.now() > end) assert.fail(`Still ${value} after ${LONGEST_WAIT_MS / 1000} s`);
    await pause(20);
  }
}

/** Opens `url` in a browser of its own memory and notes console errors and requests to other origins. */
export async function openConsole(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  const { origin, protocol, href } = new URL(url);
  // A page from a file is alone.
  const own = protocol === 'file:' ? href : `${origin}/`;
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(own)) faults.push(`request to ${request.url()}`);
  });
  const shown = new ConsolePage(page, page, faults);
  await page.goto(url);
  return shown;
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

interface AxeWindow {
  readonly axe: {
    run(options: object): Promise<{
      violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
    }>;
  };
}

/** Fails with what axe-core calls serious or critical on the page as it stands. */
export async function assertAccessible({ page }: ConsolePage, what: string): Promise<void> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as AxeWindow).axe.run({ resultTypes: ['violations'] }),
  );
  const serious = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, failureSummary }) => `${html}\n${failureSummary}`).join('\n')}`,
    );
  assert.deepEqual(serious, [], what);
}
