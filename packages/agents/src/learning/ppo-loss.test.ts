import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { ActorCritic } from './actor-critic.ts';
import { plainKernels } from './plain-kernels.ts';
import { type PpoSamples, ppoLossGradient } from './ppo.ts';

const ROWS = 12;
const coefficients = { clipCoef: 0.2, entropyCoef: 0.05, valueCoef: 0.5 };

/** A network and samples whose probability ratios lie below, inside and above the clip range. */
function setting() {
  const shape = { observationSize: 3, headSizes: [3, 2], hidden: [5, 4] };
  const network = new ActorCritic(plainKernels('float64'), shape, ROWS);
  network.initialize(new RandomStream(1, 'weights'));
  network.keepBonus = 0.7;
  const random = new RandomStream(2, 'samples');
  const normals = (length: number) => Float64Array.from({ length }, () => random.normal());
  const observations = normals(ROWS * 3);
  const actions = Int32Array.from({ length: ROWS * 2 }, (_, i) => random.integer(0, i % 2 === 0 ? 2 : 1));
  const binsInForce = Int32Array.from({ length: ROWS * 2 }, (_, i) => random.integer(0, i % 2 === 0 ? 2 : 1));
  const current = network.logProbabilities(observations, binsInForce, ROWS).slice();
  const samples: PpoSamples = {
    rows: ROWS,
    observations,
    binsInForce,
    actions,
    logProbabilities: Float64Array.from(
      { length: ROWS },
      (_, row) => network.heads.logProbability(current, row, actions) + [-0.4, 0.05, 0.4][row % 3],
    ),
    advantages: normals(ROWS),
    targets: normals(ROWS),
  };
  return { network, samples };
}

describe('ppoLossGradient', () => {
  it('is the gradient of the loss, as finite differences see it', () => {
    const { network, samples } = setting();
    const { parameters, gradients } = network.adam;
    const total = () => {
      const loss = ppoLossGradient(network, samples, coefficients);
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
    const { network, samples } = setting();
    const { gradients } = network.adam;
    ppoLossGradient(network, samples, coefficients);
    const once = gradients.slice();
    ppoLossGradient(network, samples, coefficients);
    for (const [p, gradient] of gradients.entries()) assert.ok(Math.abs(gradient - 2 * once[p]) < 1e-12);
  });

  it('clips ratios that left the range, and says how many did', () => {
    const { network, samples } = setting();
    const { policyLoss, clipFraction, ratioError, approxKl } = ppoLossGradient(
      network,
      samples,
      coefficients,
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
    const below = ppoLossGradient(network, likelier, coefficients).ratioError;
    assert.ok(Math.abs(below - (1 - Math.exp(-1.4))) < 1e-12);
  });

  it('finds no divergence from the policy that played', () => {
    const { network, samples } = setting();
    const own = network.logProbabilities(samples.observations, samples.binsInForce, ROWS).slice();
    const logProbabilities = Float64Array.from({ length: ROWS }, (_, row) =>
      network.heads.logProbability(own, row, samples.actions),
    );
    const loss = ppoLossGradient(network, { ...samples, logProbabilities }, coefficients);
    assert.equal(loss.approxKl, 0);
    assert.equal(loss.ratioError, 0);
    assert.equal(loss.clipFraction, 0);
  });
});
