import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Kernels } from './kernels.ts';
import { type LearningEnvironment, RUNNING, TERMINATED, TRUNCATED } from './learning-environment.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import { PPO_DEFAULTS, Ppo, type PpoOptions } from './ppo.ts';
import { SerialRollouts } from './serial-rollouts.fixture.ts';

const OBSERVATIONS = [1, -1, 2, 0.5];
const REWARDS = [1, 2, 3, 6];
const ROWS = REWARDS.length;

type End = typeof RUNNING | typeof TERMINATED | typeof TRUNCATED;

/** Shows the observations and pays the rewards above in turn, whatever is done; `end` follows each action. */
function scripted(end: End): () => LearningEnvironment {
  return () => {
    let at = 0;
    return {
      observationSize: 1,
      headSizes: [2],
      initialBins: [0],
      reset(_seed, observation) {
        observation[0] = OBSERVATIONS[at % ROWS];
      },
      step(_action, observation) {
        const reward = REWARDS[at % ROWS];
        at++;
        observation[0] = OBSERVATIONS[at % ROWS];
        return { reward, end };
      },
    };
  };
}

/**
 * One environment, four actions, one minibatch of them, and networks without hidden layers whose parameters are all 0:
 * each action has the probability 0.5, and each value is 0.
 */
function learner(
  changes: Partial<PpoOptions> = {},
  end: End = TERMINATED,
  kernels: Kernels = plainKernels('float64'),
) {
  const options = {
    ...PPO_DEFAULTS,
    ...{ seed: 0, totalSteps: 1000, groupSize: 1, minibatchSize: ROWS, epochs: 1 },
    ...{ learningRate: 0.1, entropyCoef: [0, 0] as const },
    ...changes,
  };
  const plan = { seed: 0, hidden: [], schedule: { seed: 0, groupSize: 1, traces: { first: 0, last: 9 } } };
  const source = new SerialRollouts([scripted(end)()], ROWS, plan, kernels);
  const ppo = new Ppo(source, kernels, options);
  ppo.network.adam.parameters.fill(0);
  return { ppo, source };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Gradients of weights and biases of the actor, then of the critic, given what each row weighs in the loss. */
function gradients(actions: readonly number[], advantages: readonly number[], targets: readonly number[]) {
  // d(-A log p(a)) / d logit k = -A (1[a = k] - 0.5); d(0.5 (V - target)^2 / 2) / dV = -0.5 target; means over the rows.
  const logits = [0, 1].map((k) =>
    actions.map((action, row) => (-advantages[row] * ((action === k ? 1 : 0) - 0.5)) / ROWS),
  );
  const values = targets.map((target) => (-PPO_DEFAULTS.valueCoef * target) / ROWS);
  const weight = (slopes: readonly number[]) => sum(slopes.map((slope, row) => slope * OBSERVATIONS[row]));
  return [...logits.map(weight), ...logits.map(sum), weight(values), sum(values)];
}

/** The parameters after the first step of Adam from 0, gradients clipped to a norm of `maxGradNorm`. */
function stepped(all: readonly number[], maxGradNorm: number, learningRate = 0.1) {
  const norm = Math.sqrt(sum(all.map((gradient) => gradient ** 2)));
  const scale = Math.min(1, maxGradNorm / norm);
  return all.map((gradient) => (-learningRate * gradient * scale) / (Math.abs(gradient * scale) + 1e-5));
}

function assertNear(actual: ArrayLike<number>, expected: readonly number[], tolerance = 1e-6) {
  assert.equal(actual.length, expected.length);
  for (const [i, value] of expected.entries()) {
    assert.ok(Math.abs(actual[i] - value) < tolerance, `${i}: ${actual[i]} and not ${value}`);
  }
}

/** Rewards over the deviation of the returns, which are the rewards: mean 3, squares 4 + 1 + 0 + 9. */
const TARGETS = REWARDS.map((reward) => reward / Math.sqrt(14 / 4 + 1e-4));
const STANDARDIZED = REWARDS.map((reward) => (reward - 3) / Math.sqrt(14 / 4));

describe('one update', () => {
  it('steps along the standardized advantages and the values’ errors, clipped by the norm of all gradients', () => {
    // So small that Adam's epsilon, 1e-5, makes the weights depend on the length of the gradients.
    const maxGradNorm = 3e-5;
    const { ppo, source } = learner({ maxGradNorm });
    const update = ppo.update();
    const actions = [...source.rollout.actions];
    assert.ok(actions.includes(0) && actions.includes(1));
    const all = gradients(actions, STANDARDIZED, TARGETS);
    assertNear(ppo.network.adam.parameters, stepped(all, maxGradNorm));
    assert.deepEqual([update.minibatches, update.steps, update.episodes, update.meanReturn], [1, 4, 4, 3]);
    assert.ok(Math.abs(update.entropy - Math.LN2) < 1e-12);
    assert.ok(Math.abs(update.policyLoss + sum(STANDARDIZED) / ROWS) < 1e-7);
    assert.ok(Math.abs(update.valueLoss - sum(TARGETS.map((target) => target ** 2 / 2)) / ROWS) < 1e-12);
    assert.ok(Math.abs(update.explainedVariance) < 1e-9, `${update.explainedVariance}`);
  });

  it('does not lengthen gradients that are shorter than the largest norm', () => {
    const { ppo, source } = learner({ maxGradNorm: 1e6 });
    ppo.update();
    const all = gradients([...source.rollout.actions], STANDARDIZED, TARGETS);
    assertNear(
      ppo.network.adam.firstMoments,
      all.map((gradient) => 0.1 * gradient),
    );
  });

  it('discounts what follows within an episode', () => {
    const { ppo, source } = learner({ maxGradNorm: 1e6, gamma: 0.5, gaeLambda: 0.5 }, RUNNING);
    ppo.update();
    // Values are 0: advantages are sums of rewards, each 0.25 of the one before; so far the returns fall by half.
    const returns = [1, 2.5, 4.25, 8.125];
    const center = sum(returns) / ROWS;
    const deviation = Math.sqrt(sum(returns.map((value) => (value - center) ** 2)) / ROWS + 1e-4);
    const earned = REWARDS.map((_, t) => sum(REWARDS.slice(t).map((reward, k) => reward * 0.25 ** k)));
    const targets = earned.map((value) => value / deviation);
    const middle = sum(earned) / ROWS;
    const spread = Math.sqrt(sum(earned.map((value) => (value - middle) ** 2)) / ROWS);
    const standardized = earned.map((value) => (value - middle) / spread);
    const all = gradients([...source.rollout.actions], standardized, targets);
    assertNear(
      ppo.network.adam.firstMoments,
      all.map((gradient) => 0.1 * gradient),
    );
  });

  it('goes on, at the end of the rollout and at a time limit, with the value of what the action led to', () => {
    for (const end of [RUNNING, TRUNCATED] as const) {
      const { ppo, source } = learner({ maxGradNorm: 1e6, gamma: 0.5, gaeLambda: 0 }, end);
      // The bias of the critic: every value is 2.
      ppo.network.adam.parameters[5] = 2;
      ppo.update();
      const deviation = ppo.returns.deviation(0);
      const errors = REWARDS.map((reward) => reward / deviation + 0.5 * 2 - 2);
      const all = gradients([...source.rollout.actions], STANDARDIZED, errors);
      assertNear(
        ppo.network.adam.firstMoments,
        all.map((gradient) => 0.1 * gradient),
      );
    }
  });

  it('goes over the rows in another order each time', () => {
    const orders: string[] = [];
    const kernels = plainKernels('float64');
    const recording: Kernels = {
      ...kernels,
      denseForward(layer, x, y, rows) {
        const seen = [...x.subarray(0, rows)];
        if (layer.outputs === 2 && rows === ROWS) {
          orders.push(seen.map((value) => seen.filter((other) => other < value).length).join(' '));
        }
        kernels.denseForward(layer, x, y, rows);
      },
    };
    const { ppo } = learner({ epochs: 12, targetKl: 1e9 }, TERMINATED, recording);
    ppo.update();
    ppo.update();
    assert.equal(orders.length, 24);
    for (const order of orders) assert.deepEqual(order.split(' ').toSorted(), ['0', '1', '2', '3']);
    assert.ok(new Set(orders).size > 6, `${new Set(orders).size} orders`);
    assert.notDeepEqual(orders.slice(0, 12), orders.slice(12));
  });

  it('takes the observations into its moments, after they have been acted on', () => {
    const { ppo } = learner();
    ppo.update();
    assert.deepEqual([ppo.observations.moments.rows, ppo.observations.moments.mean], [4, [0.625]]);
    assert.deepEqual([ppo.returns.moments.rows, ppo.returns.moments.mean], [4, [3]]);
  });

  it('acts and learns with the keep bonus', () => {
    const { ppo } = learner({ keepBonus: [Math.log(3), 0] });
    const { entropy, firstRatioError } = ppo.update();
    // The bin in force has three quarters of the probability.
    assert.ok(Math.abs(entropy + 0.75 * Math.log(0.75) + 0.25 * Math.log(0.25)) < 1e-12);
    assert.equal(firstRatioError, 0);
  });

  it('changes the critic only, until the policy may be trusted', () => {
    const { ppo, source } = learner({ criticOnlySteps: ROWS, maxGradNorm: 3e-5 });
    ppo.update();
    const all = gradients([...source.rollout.actions], STANDARDIZED, TARGETS);
    const criticOnly = all.map((gradient, i) => (i < 4 ? 0 : gradient));
    assertNear(ppo.network.adam.parameters, stepped(criticOnly, 3e-5));
    ppo.update();
    assert.ok(ppo.network.adam.parameters.subarray(0, 4).every((weight) => weight !== 0));
  });
});
