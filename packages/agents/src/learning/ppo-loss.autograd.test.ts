import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultDevice, init, nn, numpy as np, valueAndGrad } from '@jax-js/jax';
import { RandomStream } from '@servegym/simulator';
import { ActorCritic } from './actor-critic.ts';
import type { Kernels } from './kernels.ts';
import type { MultilayerPerceptron } from './multilayer-perceptron.ts';
import { plainKernels } from './plain-kernels.ts';
import { type PpoSamples, ppoLossGradient } from './ppo.ts';
import { simdKernels } from './simd-kernels.ts';

const ROWS = 24;
const SHAPE = { observationSize: 26, headSizes: [13, 10, 3, 2], hidden: [20, 12] };
const COEFFICIENTS = { clipCoef: 0.2, entropyCoef: 0.05, valueCoef: 0.5 };
const KEEP_BONUS = 0.7;

function setting(kernels: Kernels) {
  const network = new ActorCritic(kernels, SHAPE, ROWS);
  network.initialize(new RandomStream(1, 'weights'));
  network.keepBonus = KEEP_BONUS;
  const random = new RandomStream(2, 'samples');
  // The last layer starts near zero; a policy that has made up its mind is the harder case.
  for (let p = 0; p < network.adam.parameters.length; p++)
    network.adam.parameters[p] += 0.1 * random.normal();
  const observations = kernels.allocate(ROWS * SHAPE.observationSize).map(() => random.normal());
  const stored = kernels.allocate(observations.length);
  stored.set(observations);
  const bins = () =>
    Int32Array.from({ length: ROWS * 4 }, (_, i) => random.integer(0, SHAPE.headSizes[i % 4] - 1));
  const [actions, binsInForce] = [bins(), bins()];
  const current = network.logProbabilities(stored, binsInForce, ROWS).slice();
  const numbers = (make: (row: number) => number) =>
    Float64Array.from({ length: ROWS }, (_, row) => make(row));
  const samples: PpoSamples = {
    rows: ROWS,
    observations: stored,
    binsInForce,
    actions,
    logProbabilities: numbers(
      (row) => network.heads.logProbability(current, row, actions) + 0.3 * random.normal(),
    ),
    advantages: numbers(() => random.normal()),
    targets: numbers(() => random.normal()),
  };
  return { network, samples };
}

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
      const { network, samples } = setting(kernels);
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
