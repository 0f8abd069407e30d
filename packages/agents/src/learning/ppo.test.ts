import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { identityEnvironment } from '../../test/identity-environment.ts';
import { simdKernels } from './kernels.ts';
import { type LearningEnvironment, RUNNING, TERMINATED, TRUNCATED } from './learning-environment.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import { PPO_DEFAULTS, Ppo, type PpoOptions } from './ppo.ts';
import { SerialRollouts } from './serial-rollouts.fixture.ts';

function learner(changes: Partial<PpoOptions> = {}, make = identityEnvironment, kernels = plainKernels()) {
  const options = {
    ...PPO_DEFAULTS,
    ...{ seed: 0, totalSteps: 20_000, groupSize: 1, minibatchSize: 64 },
    ...changes,
  };
  const { seed, groupSize } = options;
  const plan = { seed, hidden: [16], schedule: { seed, groupSize, traces: { first: 0, last: 1e6 } } };
  const source = new SerialRollouts(Array.from({ length: 8 }, make), 32, plan, kernels);
  return new Ppo(source, kernels, options);
}

function train(ppo: Ppo) {
  const updates = [];
  while (!ppo.finished) updates.push(ppo.update());
  return updates;
}

for (const makeKernels of [plainKernels, simdKernels]) {
  describe(`Ppo on ${makeKernels().name} kernels`, () => {
    it('learns the identity', () => {
      const updates = train(learner({ gamma: 0.5, learningRate: 3e-3 }, identityEnvironment, makeKernels()));
      const chance = 10 * (1 / 4 + 1 / 3) * 0.5;
      assert.ok(Math.abs(updates[0].meanReturn! - chance) < 1);
      assert.ok(updates.at(-1)!.meanReturn! > 9.5, `return ${updates.at(-1)!.meanReturn}`);
      assert.ok(updates.at(-1)!.entropy < updates[0].entropy / 4);
    });

    it('sees, in the first minibatch of each update, exactly the probabilities that it acted with', () => {
      const updates = train(learner({ totalSteps: 3_000 }, identityEnvironment, makeKernels()));
      assert.ok(updates.length > 1);
      for (const update of updates) assert.equal(update.firstRatioError, 0);
    });

    it('is deterministic: same seed, same weights; another seed, others', () => {
      const weights = (seed: number) => {
        const ppo = learner({ seed, totalSteps: 1_000 }, identityEnvironment, makeKernels());
        train(ppo);
        return ppo.network.adam.parameters;
      };
      assert.deepEqual(weights(1), weights(1));
      assert.notDeepEqual(weights(1), weights(2));
    });
  });
}

describe('Ppo', () => {
  it('lets learning rate, entropy weight and keep bonus fall along the way', () => {
    const updates = train(
      learner({ totalSteps: 2_560, learningRate: 0.01, entropyCoef: [0.1, 0], keepBonus: [4, 2] }),
    );
    assert.equal(updates.length, 10);
    assert.equal(updates[0].learningRate, 0.01);
    assert.equal(updates[0].entropyCoef, 0.1);
    assert.equal(updates[0].keepBonus, 4);
    assert.ok(Math.abs(updates[5].learningRate - 0.005) < 1e-12);
    assert.ok(Math.abs(updates[5].entropyCoef - 0.05) < 1e-12);
    assert.ok(Math.abs(updates[5].keepBonus - 3) < 1e-12);
    assert.equal(updates.at(-1)!.steps, 2_560);
  });

  it('ends an update early once the policy has moved too far', () => {
    const full = PPO_DEFAULTS.epochs * 4;
    const bold = { totalSteps: 256, learningRate: 0.05 };
    assert.equal(learner({ ...bold, targetKl: 1e9 }).update().minibatches, full);
    const stopped = learner({ ...bold, targetKl: 0.01 });
    assert.ok(stopped.update().minibatches < full);
    assert.ok(stopped.network.adam.gradients.every((gradient) => gradient === 0));
  });

  it('values a time limit as if the episode went on, and an end as an end', () => {
    // A reward of 1 each window for ever, though cut off after five: worth 1 / (1 - gamma), and 1 + ... + gamma^4 at most.
    const steady = (end: typeof TERMINATED | typeof TRUNCATED) => (): LearningEnvironment => {
      let window = 0;
      return {
        observationSize: 1,
        headSizes: [2],
        initialBins: [0],
        reset(_seed, observation) {
          window = 0;
          observation[0] = 0;
        },
        step() {
          window++;
          return { reward: 1, end: window === 5 ? end : RUNNING };
        },
      };
    };
    const firstValue = (end: typeof TERMINATED | typeof TRUNCATED) => {
      const ppo = learner({ gamma: 0.8, learningRate: 3e-3 }, steady(end));
      train(ppo);
      const scaled = ppo.network.critic.forward(new Float32Array([0]), 1)[0];
      return scaled * ppo.returns.deviation(0);
    };
    assert.ok(Math.abs(firstValue(TRUNCATED) - 5) < 0.5, `${firstValue(TRUNCATED)}`);
    // Always the same observation: the mean over the five windows left to play.
    const mean = [1, 2, 3, 4, 5].reduce((sum, left) => sum + (1 - 0.8 ** left) / 0.2, 0) / 5;
    assert.ok(Math.abs(firstValue(TERMINATED) - mean) < 0.5, `${firstValue(TERMINATED)} vs ${mean}`);
  });

  it('finds the better action under traffic noise sooner with same-trace groups', () => {
    // The trace pays or costs up to 100 a window, whatever one does; the better action pays 1 more.
    const noisy = (): LearningEnvironment => {
      let random = new RandomStream(0, 'traffic');
      let window = 0;
      return {
        observationSize: 1,
        headSizes: [2],
        initialBins: [0],
        reset(seed, observation) {
          random = new RandomStream(seed, 'traffic');
          window = 0;
          observation[0] = 0;
        },
        step(action) {
          window++;
          return {
            reward: action[0] + 200 * random.uniform() - 100,
            end: window === 8 ? TERMINATED : RUNNING,
          };
        },
      };
    };
    const betterShare = (groupSize: number) => {
      const changes = { totalSteps: 4_000, groupSize, learningRate: 1e-2, gaeLambda: 0, minibatchSize: 256 };
      const ppo = learner(changes, noisy);
      train(ppo);
      const logits = ppo.network.actor.forward(new Float32Array([0]), 1);
      ppo.network.heads.normalize(logits, 1);
      return Math.exp(logits[1]);
    };
    const grouped = betterShare(8);
    assert.ok(grouped > 0.9, `grouped ${grouped}`);
    assert.ok(grouped > betterShare(1) + 0.1, `grouped ${grouped}, alone ${betterShare(1)}`);
  });

  it('refuses rewards that would spoil the weights', () => {
    const broken = (): LearningEnvironment => ({
      ...identityEnvironment(),
      step: () => ({ reward: Number.NaN, end: RUNNING }),
    });
    assert.throws(() => learner({}, broken).update(), /Expected finite rewards, got NaN on trace \d+/);
  });

  it('refuses groups that do not come out even', () => {
    assert.throws(
      () => learner({ groupSize: 3 }),
      /Expected `groupSize` to divide the 8 environments, got 3/,
    );
  });
});
