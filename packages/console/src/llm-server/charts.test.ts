import assert from 'node:assert/strict';
import { it } from 'node:test';
import { firstFrame, nextFrame } from '../state/frame.ts';
import { rewardParts } from './charts.ts';

const START = firstFrame({ observation: {}, reward: null, done: false, metadata: {} });
const window = (reward: number, reward_components: Record<string, number>) =>
  nextFrame(START, { observation: {}, action: {}, reward, done: false, metadata: { reward_components } });
const task = {
  id: 1,
  name: '',
  difficulty: 'easy',
  description: '',
  reward_weights: { alpha: 0.4, beta: 0.25, gamma: 0.25, delta: 0.1 },
} as const;

it('parts that add up to the reward are shown as they are', () => {
  assert.deepEqual(rewardParts(window(0.3, { slo: 0.5, memory: -0.2 }), undefined), {
    slo: 0.5,
    memory: -0.2,
  });
});

it('terms are weighed with the weights of the task', () => {
  const terms = { throughput: 1, latency: 0.4, violations: 0.2, cost: 0.5 };
  const parts = rewardParts(window(0.4 - 0.1 - 0.05 - 0.05, terms), task);
  assert.deepEqual(
    Object.values(parts).map((part) => Number(part.toFixed(9))),
    [0.4, -0.1, -0.05, -0.05],
  );
});

it('parts of a reward that was held at its bound are shown too', () => {
  const terms = { throughput: 0, latency: 2, violations: 5, cost: 2 };
  assert.equal(Object.keys(rewardParts(window(-1, terms), task)).length, 4);
});

it('parts that do not add up to the reward are not shown', () => {
  assert.deepEqual(rewardParts(window(0.9, { slo: 0.5, memory: -0.2 }), undefined), {});
});
