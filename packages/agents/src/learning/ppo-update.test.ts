import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultDevice, init, nn, numpy as np, valueAndGrad } from '@jax-js/jax';
import { RandomStream } from '@servegym/simulator';
import { ActorCritic, type ActorCriticShape } from './actor-critic.ts';
import { type Kernels, simdKernels } from './kernels.ts';
import { type LearningEnvironment, RUNNING, TERMINATED, TRUNCATED } from './learning-environment.ts';
import type { MultilayerPerceptron } from './multilayer-perceptron.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import {
  generalizedAdvantages,
  PPO_DEFAULTS,
  Ppo,
  type PpoOptions,
  type PpoSamples,
  ppoLossGradient,
  subtractTraceBaseline,
} from './ppo.ts';
import { SerialRollouts } from './serial-rollouts.fixture.ts';

const GAMMA = 0.9;
const LAMBDA = 0.5;

function advantages(
  environments: number,
  steps: { reward: number; value: number; end?: number; next?: number }[],
  gamma = GAMMA,
  lambda = LAMBDA,
): number[] {
  const result = new Float64Array(steps.length);
  generalizedAdvantages(
    {
      environments,
      steps: steps.length / environments,
      rewards: Float64Array.from(steps, ({ reward }) => reward),
      values: Float64Array.from(steps, ({ value }) => value),
      ends: Uint8Array.from(steps, ({ end }) => end ?? RUNNING),
      nextValues: Float64Array.from(steps, ({ next }) => next ?? Number.NaN),
    },
    gamma,
    lambda,
    result,
  );
  return [...result];
}

function assertNear(actual: number[], expected: number[]) {
  assert.equal(actual.length, expected.length);
  for (const [i, value] of actual.entries()) assert.ok(Math.abs(value - expected[i]) < 1e-12, `${actual}`);
}

describe('generalizedAdvantages', () => {
  it('discounts the errors of the critic, by hand', () => {
    const deltas = [1 + 0.9 * 3 - 2, 2 + 0.9 * 4 - 3, 3 + 0.9 * 5 - 4];
    assertNear(
      advantages(1, [
        { reward: 1, value: 2 },
        { reward: 2, value: 3 },
        { reward: 3, value: 4, next: 5 },
      ]),
      [deltas[0] + 0.45 * deltas[1] + 0.45 ** 2 * deltas[2], deltas[1] + 0.45 * deltas[2], deltas[2]],
    );
  });

  it('expects nothing after the end of an episode', () => {
    assertNear(
      advantages(1, [
        { reward: 1, value: 2, end: TERMINATED, next: 100 },
        { reward: 7, value: 5, next: 0 },
      ]),
      [1 - 2, 7 - 5],
    );
  });

  it('bootstraps where a time limit cut the episode off', () => {
    assertNear(
      advantages(1, [
        { reward: 1, value: 2, end: TRUNCATED, next: 100 },
        { reward: 7, value: 5, next: 0 },
      ]),
      [1 + 0.9 * 100 - 2, 7 - 5],
    );
  });

  it('is the discounted return less the value when lambda is 1', () => {
    const steps = [
      { reward: 1, value: 0.3 },
      { reward: -2, value: 0.2 },
      { reward: 4, value: 0.1, end: TERMINATED },
    ];
    assertNear(advantages(1, steps, 0.9, 1), [1 - 1.8 + 3.24 - 0.3, -2 + 3.6 - 0.2, 4 - 0.1]);
  });

  it('keeps environments apart', () => {
    const a = [
      { reward: 1, value: 2 },
      { reward: 2, value: 3, next: 4 },
    ];
    const b = [
      { reward: 5, value: 1, end: TERMINATED },
      { reward: 6, value: 2, next: 3 },
    ];
    const together = advantages(2, [a[0], b[0], a[1], b[1]]);
    assertNear([together[0], together[2]], advantages(1, a));
    assertNear([together[1], together[3]], advantages(1, b));
  });
});

function subtract(
  groupSize: number,
  rows: { seeds: number[]; stepIndices: number[]; advantages: number[] }[],
) {
  const advantages = Float64Array.from(rows.flatMap((row) => row.advantages));
  const places = {
    environments: rows[0].seeds.length,
    steps: rows.length,
    seeds: Float64Array.from(rows.flatMap((row) => row.seeds)),
    stepIndices: Int32Array.from(rows.flatMap((row) => row.stepIndices)),
  };
  subtractTraceBaseline(places, groupSize, advantages);
  return [...advantages];
}

describe('subtractTraceBaseline', () => {
  it('subtracts the mean of the others on the same trace at the same window', () => {
    const row = { seeds: [7, 7, 7], stepIndices: [4, 4, 4], advantages: [1, 2, 6] };
    assert.deepEqual(subtract(3, [row]), [1 - 4, 2 - 3.5, 6 - 1.5]);
  });

  it('cancels what the trace does to everybody', () => {
    const own = [1, -1, 3];
    const seeds = [7, 7, 7];
    const calm = { seeds, stepIndices: [0, 0, 0], advantages: own };
    const storm = { seeds, stepIndices: [1, 1, 1], advantages: own.map((advantage) => advantage - 50) };
    const [a, b, c, d, e, f] = subtract(3, [calm, storm]);
    assert.deepEqual([d, e, f], [a, b, c]);
  });

  it('keeps groups apart, and leaves alone who has nobody beside', () => {
    const row = {
      seeds: [7, 7, 8, 9, 5, 5],
      stepIndices: [0, 0, 0, 0, 3, 4],
      advantages: [1, 3, 10, 20, 30, 40],
    };
    assert.deepEqual(subtract(2, [row]), [-2, 2, 10, 20, 30, 40]);
    assert.deepEqual(subtract(1, [row]), row.advantages);
  });
});

const ROWS = 24;
const SMALL = { observationSize: 3, headSizes: [3, 2], hidden: [5, 4] };
const SHAPE = { observationSize: 26, headSizes: [13, 10, 3, 2], hidden: [20, 12] };
const COEFFICIENTS = { clipCoef: 0.2, entropyCoef: 0.05, valueCoef: 0.5 };
const KEEP_BONUS = 0.7;

/** A network and samples that were played by a policy whose log-probabilities differ by `offset`. */
function setting(
  kernels: Kernels,
  shape: ActorCriticShape,
  offset: (row: number, random: RandomStream) => number,
) {
  const network = new ActorCritic(kernels, shape, ROWS);
  network.initialize(new RandomStream(1, 'weights'));
  network.keepBonus = KEEP_BONUS;
  const random = new RandomStream(2, 'samples');
  // The last layer starts near zero; a policy that has made up its mind is the harder case.
  for (let p = 0; p < network.adam.parameters.length; p++)
    network.adam.parameters[p] += 0.1 * random.normal();
  const observations = kernels.allocate(ROWS * shape.observationSize);
  for (let i = 0; i < observations.length; i++) observations[i] = random.normal();
  const heads = shape.headSizes.length;
  const bins = () =>
    Int32Array.from({ length: ROWS * heads }, (_, i) => random.integer(0, shape.headSizes[i % heads] - 1));
  const [actions, binsInForce] = [bins(), bins()];
  const current = network.logProbabilities(observations, binsInForce, ROWS).slice();
  const numbers = (make: (row: number) => number) =>
    Float64Array.from({ length: ROWS }, (_, row) => make(row));
  const samples: PpoSamples = {
    rows: ROWS,
    observations,
    binsInForce,
    actions,
    logProbabilities: numbers(
      (row) => network.heads.logProbability(current, row, actions) + offset(row, random),
    ),
    advantages: numbers(() => random.normal()),
    targets: numbers(() => random.normal()),
  };
  return { network, samples };
}

/** A small network, and samples whose probability ratios lie below, inside and above the clip range. */
const small = () => setting(plainKernels('float64'), SMALL, (row) => [-0.4, 0.05, 0.4][row % 3]);

describe('ppoLossGradient', () => {
  it('is the gradient of the loss, as finite differences see it', () => {
    const { network, samples } = small();
    const { parameters, gradients } = network.adam;
    const total = () => {
      const loss = ppoLossGradient(network, samples, COEFFICIENTS);
      return loss.policyLoss - 0.05 * loss.entropy + 0.5 * loss.valueLoss;
    };
    total();
    const analytical = gradients.slice();
    for (let p = 0; p < parameters.length; p++) {
      const value = parameters[p];
      parameters[p] = value + 1e-6;
      const above = total();
      parameters[p] = value - 1e-6;
      const below = total();
      parameters[p] = value;
      const numerical = (above - below) / 2e-6;
      assert.ok(
        Math.abs(analytical[p] - numerical) < 1e-8,
        `parameter ${p}: ${analytical[p]} vs ${numerical}`,
      );
    }
  });

  it('adds to the gradients that are there', () => {
    const { network, samples } = small();
    const { gradients } = network.adam;
    ppoLossGradient(network, samples, COEFFICIENTS);
    const once = gradients.slice();
    ppoLossGradient(network, samples, COEFFICIENTS);
    for (const [p, gradient] of gradients.entries()) assert.ok(Math.abs(gradient - 2 * once[p]) < 1e-12);
  });

  it('clips ratios that left the range, and says how many did', () => {
    const { network, samples } = small();
    const { policyLoss, clipFraction, ratioError, approxKl } = ppoLossGradient(
      network,
      samples,
      COEFFICIENTS,
    );
    const expected = Array.from(samples.advantages, (advantage, row) => {
      const ratio = Math.exp([0.4, -0.05, -0.4][row % 3]);
      return -Math.min(ratio * advantage, Math.max(0.8, Math.min(1.2, ratio)) * advantage);
    });
    assert.ok(Math.abs(policyLoss - expected.reduce((sum, value) => sum + value, 0) / ROWS) < 1e-12);
    assert.ok(Math.abs(clipFraction - 2 / 3) < 1e-12);
    assert.ok(Math.abs(ratioError - (Math.exp(0.4) - 1)) < 1e-12);
    const divergences = [0.4, -0.05, -0.4].map((logRatio) => Math.exp(logRatio) - 1 - logRatio);
    assert.ok(Math.abs(approxKl - divergences.reduce((sum, value) => sum + value, 0) / 3) < 1e-12);
    // A ratio below 1 is as far from it as one above.
    const likelier = { ...samples, logProbabilities: samples.logProbabilities.map((log) => log + 1) };
    const below = ppoLossGradient(network, likelier, COEFFICIENTS).ratioError;
    assert.ok(Math.abs(below - (1 - Math.exp(-1.4))) < 1e-12);
  });

  it('finds no divergence from the policy that played', () => {
    const { network, samples } = small();
    const own = network.logProbabilities(samples.observations, samples.binsInForce, ROWS).slice();
    const logProbabilities = Float64Array.from({ length: ROWS }, (_, row) =>
      network.heads.logProbability(own, row, samples.actions),
    );
    const loss = ppoLossGradient(network, { ...samples, logProbabilities }, COEFFICIENTS);
    assert.equal(loss.approxKl, 0);
    assert.equal(loss.ratioError, 0);
    assert.equal(loss.clipFraction, 0);
  });
});

/** Weights and biases of a network, as matrices and vectors. */
function layersOf({ layers }: MultilayerPerceptron) {
  return layers.map(({ weights, bias, inputs, outputs }) => ({
    weights: np.array(Float32Array.from(weights)).reshape([inputs, outputs]),
    bias: np.array(Float32Array.from(bias)),
  }));
}
type Layers = ReturnType<typeof layersOf>;

function forward(layers: Layers, x: np.Array): np.Array {
  return layers.reduce((input, { weights, bias }, l) => {
    const sums = np.add(np.matmul(input, weights), bias);
    return l === layers.length - 1 ? sums : np.tanh(sums);
  }, x);
}

/** The loss as the paper writes it, and its gradient by automatic differentiation. */
function expected(network: ActorCritic, samples: PpoSamples) {
  const oneHot = (bins: Int32Array, head: number) => {
    const column = Int32Array.from({ length: ROWS }, (_, row) => bins[row * SHAPE.headSizes.length + head]);
    return nn.oneHot(np.array(column), SHAPE.headSizes[head]);
  };
  const vector = (values: Float64Array) => np.array(Float32Array.from(values));
  const x = np.array(Float32Array.from(samples.observations)).reshape([ROWS, SHAPE.observationSize]);
  const advantages = vector(samples.advantages);

  const loss = ({ actor, critic }: { actor: Layers; critic: Layers }) => {
    const logits = forward(actor, x.ref);
    let logProbability = np.zeros([ROWS]);
    let entropy = np.zeros([ROWS]);
    for (let head = 0, at = 0; head < SHAPE.headSizes.length; at += SHAPE.headSizes[head], head++) {
      const own = logits.ref.slice([], [at, at + SHAPE.headSizes[head]]);
      const kept = np.multiply(oneHot(samples.binsInForce, head), KEEP_BONUS);
      const logSoftmax = nn.logSoftmax(np.add(own, kept), -1);
      logProbability = logProbability.add(
        np.sum(np.multiply(oneHot(samples.actions, head), logSoftmax.ref), 1),
      );
      entropy = entropy.sub(np.sum(np.multiply(np.exp(logSoftmax.ref), logSoftmax), 1));
    }
    logits.dispose();
    const ratio = np.exp(logProbability.sub(vector(samples.logProbabilities)));
    const clipped = np.clip(ratio.ref, 1 - COEFFICIENTS.clipCoef, 1 + COEFFICIENTS.clipCoef);
    const gain = np.minimum(ratio.mul(advantages.ref), clipped.mul(advantages.ref));
    const values = forward(critic, x.ref).reshape([ROWS]);
    const valueLoss = np.square(values.sub(vector(samples.targets))).mul(0.5);
    return np
      .mean(valueLoss)
      .mul(COEFFICIENTS.valueCoef)
      .sub(np.mean(gain))
      .sub(np.mean(entropy).mul(COEFFICIENTS.entropyCoef));
  };
  const [value, gradients] = valueAndGrad(loss)({
    actor: layersOf(network.actor),
    critic: layersOf(network.critic),
  });
  const flat = [...gradients.actor, ...gradients.critic].flatMap(({ weights, bias }) => [
    ...weights.reshape([-1]).dataSync(),
    ...bias.dataSync(),
  ]);
  return { value: value.dataSync()[0], gradients: flat };
}

describe('ppoLossGradient, against automatic differentiation', () => {
  for (const kernels of [plainKernels(), simdKernels()]) {
    it(`agrees in every parameter on ${kernels.name} kernels`, async () => {
      await init('cpu');
      defaultDevice('cpu');
      const { network, samples } = setting(kernels, SHAPE, (_, random) => 0.3 * random.normal());
      const { policyLoss, entropy, valueLoss, clipFraction } = ppoLossGradient(
        network,
        samples,
        COEFFICIENTS,
      );
      assert.ok(clipFraction > 0.2 && clipFraction < 0.8, 'some ratios are clipped and some are not');
      const { value, gradients } = expected(network, samples);
      assert.ok(Math.abs(policyLoss - 0.05 * entropy + 0.5 * valueLoss - value) < 1e-5);
      assert.equal(network.adam.gradients.length, gradients.length);
      const scale = Math.max(...gradients.map(Math.abs));
      for (const [p, gradient] of network.adam.gradients.entries()) {
        assert.ok(
          Math.abs(gradient - gradients[p]) < 1e-5 * scale,
          `parameter ${p}: ${gradient} vs ${gradients[p]}`,
        );
      }
    });
  }
});

const OBSERVATIONS = [1, -1, 2, 0.5];
const REWARDS = [1, 2, 3, 6];
const UPDATE_ROWS = REWARDS.length;

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
        observation[0] = OBSERVATIONS[at % UPDATE_ROWS];
      },
      step(_action, observation) {
        const reward = REWARDS[at % UPDATE_ROWS];
        at++;
        observation[0] = OBSERVATIONS[at % UPDATE_ROWS];
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
    ...{ seed: 0, totalSteps: 1000, groupSize: 1, minibatchSize: UPDATE_ROWS, epochs: 1 },
    ...{ learningRate: 0.1, entropyCoef: [0, 0] as const },
    ...changes,
  };
  const plan = { seed: 0, hidden: [], schedule: { seed: 0, groupSize: 1, traces: { first: 0, last: 9 } } };
  const source = new SerialRollouts([scripted(end)()], UPDATE_ROWS, plan, kernels);
  const ppo = new Ppo(source, kernels, options);
  ppo.network.adam.parameters.fill(0);
  return { ppo, source };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Gradients of weights and biases of the actor, then of the critic, given what each row weighs in the loss. */
function gradients(actions: readonly number[], advantages: readonly number[], targets: readonly number[]) {
  // d(-A log p(a)) / d logit k = -A (1[a = k] - 0.5); d(0.5 (V - target)^2 / 2) / dV = -0.5 target; means over the rows.
  const logits = [0, 1].map((k) =>
    actions.map((action, row) => (-advantages[row] * ((action === k ? 1 : 0) - 0.5)) / UPDATE_ROWS),
  );
  const values = targets.map((target) => (-PPO_DEFAULTS.valueCoef * target) / UPDATE_ROWS);
  const weight = (slopes: readonly number[]) => sum(slopes.map((slope, row) => slope * OBSERVATIONS[row]));
  return [...logits.map(weight), ...logits.map(sum), weight(values), sum(values)];
}

/** The parameters after the first step of Adam from 0, gradients clipped to a norm of `maxGradNorm`. */
function stepped(all: readonly number[], maxGradNorm: number, learningRate = 0.1) {
  const norm = Math.sqrt(sum(all.map((gradient) => gradient ** 2)));
  const scale = Math.min(1, maxGradNorm / norm);
  return all.map((gradient) => (-learningRate * gradient * scale) / (Math.abs(gradient * scale) + 1e-5));
}

function assertAllNear(actual: ArrayLike<number>, expected: readonly number[], tolerance = 1e-6) {
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
    assertAllNear(ppo.network.adam.parameters, stepped(all, maxGradNorm));
    assert.deepEqual([update.minibatches, update.steps, update.episodes, update.meanReturn], [1, 4, 4, 3]);
    assert.ok(Math.abs(update.entropy - Math.LN2) < 1e-12);
    assert.ok(Math.abs(update.policyLoss + sum(STANDARDIZED) / UPDATE_ROWS) < 1e-7);
    assert.ok(
      Math.abs(update.valueLoss - sum(TARGETS.map((target) => target ** 2 / 2)) / UPDATE_ROWS) < 1e-12,
    );
    assert.ok(Math.abs(update.explainedVariance) < 1e-9, `${update.explainedVariance}`);
  });

  it('does not lengthen gradients that are shorter than the largest norm', () => {
    const { ppo, source } = learner({ maxGradNorm: 1e6 });
    ppo.update();
    const all = gradients([...source.rollout.actions], STANDARDIZED, TARGETS);
    assertAllNear(
      ppo.network.adam.firstMoments,
      all.map((gradient) => 0.1 * gradient),
    );
  });

  it('discounts what follows within an episode', () => {
    const { ppo, source } = learner({ maxGradNorm: 1e6, gamma: 0.5, gaeLambda: 0.5 }, RUNNING);
    ppo.update();
    // Values are 0: advantages are sums of rewards, each 0.25 of the one before; so far the returns fall by half.
    const returns = [1, 2.5, 4.25, 8.125];
    const center = sum(returns) / UPDATE_ROWS;
    const deviation = Math.sqrt(sum(returns.map((value) => (value - center) ** 2)) / UPDATE_ROWS + 1e-4);
    const earned = REWARDS.map((_, t) => sum(REWARDS.slice(t).map((reward, k) => reward * 0.25 ** k)));
    const targets = earned.map((value) => value / deviation);
    const middle = sum(earned) / UPDATE_ROWS;
    const spread = Math.sqrt(sum(earned.map((value) => (value - middle) ** 2)) / UPDATE_ROWS);
    const standardized = earned.map((value) => (value - middle) / spread);
    const all = gradients([...source.rollout.actions], standardized, targets);
    assertAllNear(
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
      assertAllNear(
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
        if (layer.outputs === 2 && rows === UPDATE_ROWS) {
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
});
