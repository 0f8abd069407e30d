import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { CategoricalHeads } from './actor-critic.ts';
import {
  fillOrthogonal,
  type LayerSizes,
  MultilayerPerceptron,
  parameterCount,
} from './multilayer-perceptron.ts';
import { plainKernels } from './plain-kernels.fixture.ts';
import { normalizeRow, RunningNormalizer } from './running-normalizer.ts';

describe('RunningNormalizer', () => {
  it('brings what it has seen to mean 0 and deviation 1', () => {
    const random = new RandomStream(1, 'rows');
    const rows = Float64Array.from({ length: 2000 }, (_, i) =>
      i % 2 === 0 ? 5 + 3 * random.normal() : 1e4 * i,
    );
    const normalizer = new RunningNormalizer(2);
    for (let row = 0; row < 1000; row++) normalizer.observe(rows, row);
    const normalized = new Float64Array(2000);
    for (let row = 0; row < 1000; row++) normalizeRow(rows, row, normalizer.scale(), normalized, row);
    for (const feature of [0, 1]) {
      const values = normalized.filter((_, i) => i % 2 === feature);
      const mean = values.reduce((sum, value) => sum + value, 0) / 1000;
      const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 1000;
      assert.ok(
        Math.abs(mean) < 1e-9 && Math.abs(variance - 1) < 1e-3,
        `feature ${feature}: ${mean}, ${variance}`,
      );
    }
  });

  it('clips at ten deviations, also a feature that had never moved', () => {
    const normalizer = new RunningNormalizer(1);
    for (let i = 0; i < 10; i++) normalizer.observe([3], 0);
    const result = new Float64Array(2);
    normalizeRow([3.001], 0, normalizer.scale(), result, 0);
    assert.ok(Math.abs(result[0]) < 0.2);
    normalizeRow([-3], 0, normalizer.scale(), result, 1);
    assert.equal(result[1], -10);
  });

  it('goes on from its moments, bit for bit, also through JSON', () => {
    const normalizer = new RunningNormalizer(2);
    for (let i = 0; i < 7; i++) normalizer.observe([Math.sin(i), Math.exp(i)], 0);
    const restored = RunningNormalizer.from(JSON.parse(JSON.stringify(normalizer.moments)));
    for (const each of [normalizer, restored]) each.observe([0.3, 0.7], 0);
    assert.deepEqual(restored.moments, normalizer.moments);
  });
});

const heads = new CategoricalHeads([3, 2]);
/** Probabilities .2 .3 .5 and .9 .1, and then uniform ones. */
const rows = () => Float64Array.from([2, 3, 5, 9, 1, 1, 1, 1, 1, 1], (odds) => Math.log(odds) + 100);

describe('CategoricalHeads', () => {
  it('normalizes each head of each row', () => {
    const logProbabilities = rows();
    heads.normalize(logProbabilities, 2);
    const expected = [0.2, 0.3, 0.5, 0.9, 0.1, 1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2];
    for (const [k, value] of logProbabilities.entries()) {
      assert.ok(Math.abs(Math.exp(value) - expected[k]) < 1e-12);
    }
  });

  it('normalizes logits of any size without overflow', () => {
    const logProbabilities = Float64Array.of(1000, -1000, 0, 5000, 5000);
    heads.normalize(logProbabilities, 1);
    assert.ok(Math.abs(logProbabilities[0]) < 1e-12);
    assert.equal(logProbabilities[1], -2000);
    assert.ok(Math.abs(logProbabilities[3] - Math.log(0.5)) < 1e-9);
  });

  it('draws every bin as often as its probability says', () => {
    const logProbabilities = rows();
    heads.normalize(logProbabilities, 2);
    const random = new RandomStream(1, 'actions');
    const counts = new Array(10).fill(0);
    const actions = new Int32Array(4);
    const draws = 20_000;
    for (let i = 0; i < draws; i++) {
      for (const row of [0, 1]) {
        heads.sample(logProbabilities, row, actions, random);
        counts[row * 5 + actions[row * 2]]++;
        counts[row * 5 + 3 + actions[row * 2 + 1]]++;
      }
    }
    for (const [k, count] of counts.entries()) {
      assert.ok(Math.abs(count / draws - Math.exp(logProbabilities[k])) < 0.015, `bin ${k}: ${count}`);
    }
  });

  it('favors one bin of each head', () => {
    const logits = new Float64Array(10);
    heads.favor(logits, Int32Array.of(2, 0, 1, 1), 3, 2);
    assert.deepEqual([...logits], [0, 0, 3, 3, 0, 0, 3, 0, 0, 3]);
  });

  it('finds the likeliest bin of each head', () => {
    const actions = new Int32Array(4);
    heads.mode(rows(), 0, actions);
    heads.mode(Float64Array.of(0, 0, 0, 0, 0, 1, 3, 2, 4, 7), 1, actions);
    assert.deepEqual([...actions], [2, 0, 1, 1]);
  });

  it('multiplies the probabilities of the heads', () => {
    const logProbabilities = rows();
    heads.normalize(logProbabilities, 2);
    const actions = Int32Array.of(1, 0, 2, 1);
    assert.ok(Math.abs(heads.logProbability(logProbabilities, 0, actions) - Math.log(0.3 * 0.9)) < 1e-12);
    assert.ok(Math.abs(heads.logProbability(logProbabilities, 1, actions) - Math.log(1 / 6)) < 1e-12);
  });

  it('differentiates log-probability and entropy as finite differences do', () => {
    const actions = Int32Array.of(0, 0, 1, 1);
    const weights = { logProbability: 0.7, entropy: -0.4 };
    const entropyOf = (logProbabilities: Float64Array) =>
      logProbabilities.slice(5, 10).reduce((sum, value) => sum - Math.exp(value) * value, 0);
    const objective = (logits: Float64Array) => {
      const logProbabilities = logits.slice();
      heads.normalize(logProbabilities, 2);
      const logProbability = heads.logProbability(logProbabilities, 1, actions);
      return weights.logProbability * logProbability + weights.entropy * entropyOf(logProbabilities);
    };
    const logits = rows();
    logits.set([0.3, -1, 2, 0.5, -0.5], 5);
    const logProbabilities = logits.slice();
    heads.normalize(logProbabilities, 2);
    const gradients = new Float64Array(10);
    const entropy = heads.gradient(
      logProbabilities,
      1,
      actions,
      weights.logProbability,
      weights.entropy,
      gradients,
    );
    assert.ok(Math.abs(entropy - entropyOf(logProbabilities)) < 1e-12);
    for (let k = 0; k < 10; k++) {
      const [above, below] = [logits.slice(), logits.slice()];
      above[k] += 1e-6;
      below[k] -= 1e-6;
      assert.ok(Math.abs(gradients[k] - (objective(above) - objective(below)) / 2e-6) < 1e-8, `logit ${k}`);
    }
  });
});

const SIZES: LayerSizes = [3, 6, 5, 2];
const ROWS = 4;

function network(sizes: LayerSizes = SIZES) {
  const kernels = plainKernels('float64');
  const parameters = kernels.allocate(parameterCount(sizes));
  const gradients = kernels.allocate(parameterCount(sizes));
  const perceptron = new MultilayerPerceptron(kernels, sizes, parameters, gradients, ROWS);
  perceptron.initialize(new RandomStream(1, 'weights'), 1);
  const random = new RandomStream(2, 'inputs');
  const x = kernels.allocate(ROWS * sizes[0]).map(() => random.normal());
  return { perceptron, parameters, gradients, x };
}

describe('MultilayerPerceptron', () => {
  it('backpropagates the gradient that finite differences give', () => {
    const { perceptron, parameters, gradients, x } = network();
    const weights = Array.from({ length: ROWS * 2 }, (_, i) => Math.sin(i + 1));
    const loss = () => {
      const y = perceptron.forward(x, ROWS);
      return weights.reduce((sum, weight, i) => sum + weight * y[i] ** 2, 0);
    };
    const y = perceptron.forward(x, ROWS);
    for (const [i, weight] of weights.entries()) perceptron.outputGradients[i] = 2 * weight * y[i];
    perceptron.backward(ROWS);
    const step = 1e-6;
    for (let p = 0; p < parameters.length; p++) {
      const value = parameters[p];
      parameters[p] = value + step;
      const above = loss();
      parameters[p] = value - step;
      const below = loss();
      parameters[p] = value;
      const numerical = (above - below) / (2 * step);
      assert.ok(Math.abs(gradients[p] - numerical) < 1e-7, `parameter ${p}: ${gradients[p]} vs ${numerical}`);
    }
  });

  it('lays out the parameters as weights and bias of each layer in turn', () => {
    const { perceptron, parameters } = network([2, 1]);
    parameters.set([10, 100, 1]);
    const y = perceptron.forward(Float64Array.of(3, 4), 1);
    assert.equal(y[0], 3 * 10 + 4 * 100 + 1);
    assert.equal(parameterCount(SIZES), 3 * 6 + 6 + 6 * 5 + 5 + 5 * 2 + 2);
  });

  it('refuses more rows than it has room for', () => {
    const { perceptron, x } = network();
    assert.throws(() => perceptron.forward(x, ROWS + 1), /Expected at most 4 rows, got 5/);
  });
});

describe('fillOrthogonal', () => {
  for (const [rows, columns] of [
    [4, 6],
    [6, 4],
    [5, 5],
  ] as const) {
    it(`makes the fewer of ${rows} rows and ${columns} columns orthogonal, of length \`gain\``, () => {
      const matrix = new Float64Array(rows * columns);
      fillOrthogonal(matrix, rows, columns, 3, new RandomStream(1, 'weights'));
      const byRows = rows <= columns;
      const vectors = Array.from({ length: Math.min(rows, columns) }, (_, v) =>
        Array.from(
          { length: Math.max(rows, columns) },
          (_, i) => matrix[byRows ? v * columns + i : i * columns + v],
        ),
      );
      for (const [a, first] of vectors.entries()) {
        for (const [b, second] of vectors.entries()) {
          const product = first.reduce((sum, value, i) => sum + value * second[i], 0);
          assert.ok(Math.abs(product - (a === b ? 9 : 0)) < 1e-9);
        }
      }
    });
  }
});
