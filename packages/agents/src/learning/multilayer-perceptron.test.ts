import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import {
  fillOrthogonal,
  type LayerSizes,
  MultilayerPerceptron,
  parameterCount,
} from './multilayer-perceptron.ts';
import { plainKernels } from './plain-kernels.fixture.ts';

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
