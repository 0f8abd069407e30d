import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { type DenseLayer, type FloatArray, type Kernels, simdKernels } from './kernels.ts';
import { plainKernels } from './plain-kernels.fixture.ts';

const BACKENDS: readonly { title: string; kernels: Kernels; tolerance: number }[] = [
  { title: 'plain, float32', kernels: plainKernels('float32'), tolerance: 1e-5 },
  { title: 'plain, float64', kernels: plainKernels('float64'), tolerance: 1e-13 },
  { title: 'simd', kernels: simdKernels(), tolerance: 1e-5 },
];

/** Odd sizes on purpose: none is a multiple of a vector's width, and each leaves a tail after whole tiles. */
const INPUTS = 7;
const OUTPUTS = 13;
const ROWS = 11;

function filled(kernels: Kernels, length: number, random: RandomStream): FloatArray {
  const values = kernels.allocate(length);
  for (let i = 0; i < length; i++) values[i] = random.normal();
  return values;
}

function layerOf(kernels: Kernels, activation: DenseLayer['activation'], random: RandomStream): DenseLayer {
  return {
    inputs: INPUTS,
    outputs: OUTPUTS,
    activation,
    weights: filled(kernels, INPUTS * OUTPUTS, random),
    bias: filled(kernels, OUTPUTS, random),
    weightGradients: kernels.allocate(INPUTS * OUTPUTS),
    biasGradients: kernels.allocate(OUTPUTS),
  };
}

/** The definition: activation(x W + b) of one output of one row. */
function expectedOutput(layer: DenseLayer, x: FloatArray, row: number, output: number): number {
  let sum = layer.bias[output];
  for (let i = 0; i < INPUTS; i++) sum += x[row * INPUTS + i] * layer.weights[i * OUTPUTS + output];
  return layer.activation === 'tanh' ? Math.tanh(sum) : sum;
}

for (const { title, kernels, tolerance } of BACKENDS) {
  const near = (actual: number, expected: number) =>
    assert.ok(
      Math.abs(actual - expected) <= tolerance * Math.max(1, Math.abs(expected)),
      `${actual} vs ${expected}`,
    );

  describe(`kernels: ${title}`, () => {
    for (const activation of ['linear', 'tanh'] as const) {
      it(`denseForward (${activation}) is activation(x W + b)`, () => {
        const random = new RandomStream(1, 'kernels test');
        const layer = layerOf(kernels, activation, random);
        const x = filled(kernels, ROWS * INPUTS, random);
        const y = kernels.allocate(ROWS * OUTPUTS);
        kernels.denseForward(layer, x, y, ROWS);
        for (let row = 0; row < ROWS; row++) {
          for (let o = 0; o < OUTPUTS; o++) near(y[row * OUTPUTS + o], expectedOutput(layer, x, row, o));
        }
      });

      it(`denseForward (${activation}) gives a row the same bits in any batch`, () => {
        const random = new RandomStream(2, 'kernels test');
        const layer = layerOf(kernels, activation, random);
        const x = filled(kernels, ROWS * INPUTS, random);
        const together = kernels.allocate(ROWS * OUTPUTS);
        kernels.denseForward(layer, x, together, ROWS);
        const alone = kernels.allocate(OUTPUTS);
        for (let row = 0; row < ROWS; row++) {
          kernels.denseForward(layer, x.subarray(row * INPUTS, (row + 1) * INPUTS), alone, 1);
          assert.deepEqual(alone.slice(), together.slice(row * OUTPUTS, (row + 1) * OUTPUTS));
        }
      });

      it(`denseBackward (${activation}) adds the gradients of the chain rule`, () => {
        const random = new RandomStream(3, 'kernels test');
        const layer = layerOf(kernels, activation, random);
        const x = filled(kernels, ROWS * INPUTS, random);
        const y = kernels.allocate(ROWS * OUTPUTS);
        kernels.denseForward(layer, x, y, ROWS);
        const yGradients = filled(kernels, ROWS * OUTPUTS, random);
        const slope = (at: number) => (activation === 'tanh' ? 1 - y[at] ** 2 : 1);
        const before = Array.from(yGradients, (gradient, at) => gradient * slope(at));
        layer.weightGradients.fill(1);
        layer.biasGradients.fill(2);
        const xGradients = kernels.allocate(ROWS * INPUTS);
        kernels.denseBackward(layer, x, y, yGradients, xGradients, ROWS);

        const sumOverRows = (term: (row: number) => number) =>
          Array.from({ length: ROWS }, (_, row) => term(row)).reduce((sum, value) => sum + value, 0);
        for (let o = 0; o < OUTPUTS; o++) {
          near(layer.biasGradients[o], 2 + sumOverRows((row) => before[row * OUTPUTS + o]));
          for (let i = 0; i < INPUTS; i++) {
            const expected = 1 + sumOverRows((row) => x[row * INPUTS + i] * before[row * OUTPUTS + o]);
            near(layer.weightGradients[i * OUTPUTS + o], expected);
          }
        }
        for (let row = 0; row < ROWS; row++) {
          for (let i = 0; i < INPUTS; i++) {
            let expected = 0;
            for (let o = 0; o < OUTPUTS; o++) {
              expected += layer.weights[i * OUTPUTS + o] * before[row * OUTPUTS + o];
            }
            near(xGradients[row * INPUTS + i], expected);
          }
        }
      });
    }

    it('squashes sums of any size', () => {
      const sums = [-1e30, -200, -20, -9, -3, -1, -1e-3, -1e-6, 0, 1e-6, 0.1, 0.7, 2, 5, 9.5, 50, 1e30];
      const layer: DenseLayer = {
        inputs: 1,
        outputs: sums.length,
        activation: 'tanh',
        weights: kernels.allocate(sums.length),
        bias: kernels.allocate(sums.length),
        weightGradients: kernels.allocate(sums.length),
        biasGradients: kernels.allocate(sums.length),
      };
      layer.bias.set(sums);
      const y = kernels.allocate(sums.length);
      kernels.denseForward(layer, kernels.allocate(1), y, 1);
      for (const [i, sum] of sums.entries()) {
        assert.ok(Math.abs(y[i] - Math.tanh(sum)) < 2e-7, `tanh ${sum}: ${y[i]}`);
        assert.ok(Math.abs(y[i]) <= 1);
      }
    });

    it('adam moves by the learning rate at first, whatever the size of the gradient', () => {
      const state = {
        parameters: kernels.allocate(3),
        gradients: kernels.allocate(3),
        firstMoments: kernels.allocate(3),
        secondMoments: kernels.allocate(3),
      };
      state.gradients.set([5, -0.5, 0]);
      kernels.adam(state, { learningRate: 0.1, gradientScale: 1, step: 1 });
      near(state.parameters[0], -0.1 * (5 / (5 + 1e-5)));
      near(state.parameters[1], 0.1 * (0.5 / (0.5 + 1e-5)));
      assert.equal(state.parameters[2], 0);
    });

    it('adam follows the moments of the scaled gradients', () => {
      const state = {
        parameters: kernels.allocate(1),
        gradients: kernels.allocate(1),
        firstMoments: kernels.allocate(1),
        secondMoments: kernels.allocate(1),
      };
      const gradients = [1, 3, -2];
      let [parameter, first, second] = [0, 0, 0];
      for (const [i, gradient] of gradients.entries()) {
        state.gradients[0] = gradient;
        kernels.adam(state, { learningRate: 0.01, gradientScale: 0.5, step: i + 1 });
        first = 0.9 * first + 0.1 * (gradient / 2);
        second = 0.999 * second + 0.001 * (gradient / 2) ** 2;
        const corrected = first / (1 - 0.9 ** (i + 1));
        parameter -= (0.01 * corrected) / (Math.sqrt(second / (1 - 0.999 ** (i + 1))) + 1e-5);
      }
      near(state.parameters[0], parameter);
      near(state.firstMoments[0], first);
      near(state.secondMoments[0], second);
    });
  });
}

describe('kernels: simd', () => {
  it('refuse an array from elsewhere, which they could not reach', () => {
    const { kernels } = BACKENDS.find(({ title }) => title === 'simd')!;
    const layer = layerOf(kernels, 'tanh', new RandomStream(1, 'kernels test'));
    const elsewhere = new Float32Array(INPUTS);
    assert.throws(() => kernels.denseForward(layer, elsewhere, kernels.allocate(OUTPUTS), 1), {
      name: 'TypeError',
      message: 'Expected an array that these kernels allocated',
    });
  });

  it('say when their memory is full', () => {
    assert.throws(() => simdKernels().allocate(2 ** 30), /Expected all arrays to fit in 268435456 bytes/);
  });
});
