import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode } from '@servegym/environments';
import { BanditPolicy } from './bandit-policy.ts';

const { defaultAction } = llmserve.tasks.shipped.bursty_workload;

/** Plays a bandit under the rewards of `pay`, with alternately quiet and busy stretches of 10 windows. */
function play(windows: number, pay: (cap: number, isBusy: boolean) => number) {
  const policy = new BanditPolicy([32, 64, 96, 256].map((batch_cap) => ({ ...defaultAction, batch_cap })));
  policy.reset({ taskId: 'bursty_workload', seed: 1 });
  const start = new ServeEpisode(llmserve.tasks.shipped.bursty_workload, 1).observation();
  let reward: number | null = null;
  let previousAction = defaultAction;
  return Array.from({ length: windows }, (_, stepIndex) => {
    const isBusy = Math.floor(stepIndex / 10) % 2 === 1;
    const observation = {
      ...start,
      request_arrival_rate: isBusy ? 30 : 3,
      mean_prompt_length: 200,
      step_index: stepIndex,
    };
    previousAction = policy.act({ observation, reward, previousAction, stepIndex });
    reward = pay(previousAction.batch_cap, isBusy);
    return { cap: previousAction.batch_cap, isBusy };
  });
}

describe('bandit', () => {
  it('tries every configuration, and then stays with the one that pays', () => {
    const played = play(200, (cap) => (cap === 256 ? 0.9 : 0.3));
    assert.equal(new Set(played.map(({ cap }) => cap)).size, 4);
    const late = played.slice(100).filter(({ cap }) => cap === 256).length;
    assert.ok(late > 75, `${late} of the last 100 windows`);
  });

  it('learns that a busy window wants something else than a quiet one', () => {
    const played = play(400, (cap, isBusy) => ((cap === 256) === isBusy ? 0.9 : 0.1)).slice(200);
    const share = (isBusy: boolean) => {
      const windows = played.filter((window) => window.isBusy === isBusy);
      return windows.filter(({ cap }) => cap === 256).length / windows.length;
    };
    assert.ok(share(true) > 0.5 && share(false) < 0.3, `${share(true)} busy, ${share(false)} quiet`);
  });
});
