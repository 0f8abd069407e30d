import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'playwright-core';
import { narrate } from '../src/llm-server/narration.ts';
import { type Frame, firstFrame, nextFrame } from '../src/state/frame.ts';

import { openPage, startBoth } from './start.ts';

const SAMPLES = 50;

const { browser, server } = await startBoth();

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
