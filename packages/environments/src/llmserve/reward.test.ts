import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rewardComponents, totalReward } from './reward.ts';

const weights = { throughput: 0.4, slo: 0.6, memory: 0.3, cost: 0.2 };
const outcome = {
  ...{ servedShare: 0.5, sloAttainment: 0.75, memoryShare: 0.25, costShare: 0.5 },
  ...{ qualityLoss: 0.02, qualityValue: 3 },
};

describe('the reward of a window', () => {
  it('pays for tokens and objectives, and takes memory, cost and quality away', () => {
    const components = rewardComponents(outcome, weights);
    const expected = { throughput: 0.2, slo: 0.45, memory: -0.075, cost: -0.1, quality: -0.06 };
    for (const [part, value] of Object.entries(expected)) {
      assert.ok(Math.abs(components[part as keyof typeof expected] - value) < 1e-12, part);
    }
    assert.ok(Math.abs(totalReward(components) - 0.415) < 1e-12);
  });

  it('is held within -1 and 1', () => {
    const nothing = { throughput: 0, slo: 0, memory: 0, cost: 0, quality: 0 };
    assert.equal(totalReward({ ...nothing, quality: -7 }), -1);
    assert.equal(totalReward({ ...nothing, slo: 1, throughput: 0.5 }), 1);
  });
});
