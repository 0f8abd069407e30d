import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultDevice, init, nn, numpy as np, valueAndGrad } from '@jax-js/jax';
import { RandomStream } from '@servegym/simulator';
import { ActorCritic, type ActorCriticShape } from './actor-critic.ts';
import { type Kernels, simdKernels } from './kernels.ts';
import type { MultilayerPerceptron } from './multilayer-perceptron.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import { type PpoSamples, ppoLossGradient } from './ppo.ts';

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
