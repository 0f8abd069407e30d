import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { playEpisode } from './play-episode.ts';
import type { EnvironmentInstance } from './playable-environment.ts';
import type { Policy, PolicyStep } from './policy.ts';

/** Observes a running total of the actions, starting from the seed; rewards each action; ends after `length` windows. */
function summing(length: number): EnvironmentInstance<number, number> {
  let total = 0;
  let played = 0;
  return {
    reset({ seed }) {
      total = seed;
      played = 0;
      return { observation: total, reward: null, done: false };
    },
    step(action) {
      total += action;
      played++;
      return Promise.resolve({ observation: total, reward: action, done: played === length });
    },
  };
}

/** Adds one to the previous action, and keeps what it was told. */
function counting() {
  const steps: PolicyStep<number, number>[] = [];
  const resets: unknown[] = [];
  const policy: Policy<number, number> = {
    name: 'counting',
    reset: (episode) => resets.push(episode),
    act(step) {
      steps.push({ ...step });
      return step.previousAction + 1;
    },
  };
  return { policy, steps, resets };
}

describe('playEpisode', () => {
  it('plays to the end and sums the rewards', async () => {
    const played = await playEpisode(summing(4), counting().policy, {
      taskId: 't',
      seed: 5,
      initialAction: 10,
    });
    assert.deepEqual(played.actions, [11, 12, 13, 14]);
    assert.equal(played.return, 50);
    assert.ok(played.wallSeconds > 0);
  });

  it('tells the policy what it sees, what is in force and how far it is', async () => {
    const { policy, steps, resets } = counting();
    await playEpisode(summing(3), policy, { taskId: 't', seed: 5, initialAction: 10 });
    assert.deepEqual(resets, [{ taskId: 't', seed: 5 }]);
    assert.deepEqual(steps, [
      { observation: 5, reward: null, previousAction: 10, stepIndex: 0 },
      { observation: 16, reward: 11, previousAction: 11, stepIndex: 1 },
      { observation: 28, reward: 12, previousAction: 12, stepIndex: 2 },
    ]);
  });

  it('leaves an episode after so many steps', async () => {
    const plan = { taskId: 't', seed: 5, initialAction: 10, maxSteps: 2 };
    assert.equal((await playEpisode(summing(4), counting().policy, plan)).actions.length, 2);
  });

  it('shows every window, and not the answer to the reset', async () => {
    const seen: unknown[] = [];
    const plan = { taskId: 't', seed: 5, initialAction: 10 };
    await playEpisode(summing(2), counting().policy, plan, (window) => seen.push(window));
    assert.deepEqual(seen, [
      { action: 11, observation: 16, reward: 11, done: false },
      { action: 12, observation: 28, reward: 12, done: true },
    ]);
  });
});
