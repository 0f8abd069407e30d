import {
  ADAM,
  type AdamState,
  type AdamStep,
  type DenseLayer,
  type FloatArray,
  type Kernels,
} from './kernels.ts';

/** Kernels in plain loops over typed arrays. `precision` is that of the storage; sums are in double precision. */
export function plainKernels(precision: 'float32' | 'float64' = 'float32'): Kernels {
  return {
    name: 'plain',
    allocate: (length) => (precision === 'float32' ? new Float32Array(length) : new Float64Array(length)),
    denseForward,
    denseBackward,
    adam,
  };
}

function denseForward(layer: DenseLayer, x: FloatArray, y: FloatArray, rows: number): void {
  const { inputs, outputs, weights, bias, activation } = layer;
  // Four outputs at a time share each load of x.
  const blocked = outputs - (outputs % 4);
  for (let row = 0; row < rows; row++) {
    const xStart = row * inputs;
    const yStart = row * outputs;
    for (let o = 0; o < blocked; o += 4) {
      let sum0 = bias[o];
      let sum1 = bias[o + 1];
      let sum2 = bias[o + 2];
      let sum3 = bias[o + 3];
      for (let i = 0, w = o; i < inputs; i++, w += outputs) {
        const value = x[xStart + i];
        sum0 += value * weights[w];
        sum1 += value * weights[w + 1];
        sum2 += value * weights[w + 2];
        sum3 += value * weights[w + 3];
      }
      y[yStart + o] = sum0;
      y[yStart + o + 1] = sum1;
      y[yStart + o + 2] = sum2;
      y[yStart + o + 3] = sum3;
    }
    for (let o = blocked; o < outputs; o++) {
      let sum = bias[o];
      for (let i = 0, w = o; i < inputs; i++, w += outputs) sum += x[xStart + i] * weights[w];
      y[yStart + o] = sum;
    }
  }
  if (activation === 'tanh') {
    for (let i = 0; i < rows * outputs; i++) y[i] = Math.tanh(y[i]);
  }
}

function denseBackward(
  layer: DenseLayer,
  x: FloatArray,
  y: FloatArray,
  yGradients: FloatArray,
  xGradients: FloatArray | null,
  rows: number,
): void {
  const { inputs, outputs, weights, weightGradients, biasGradients, activation } = layer;
  if (activation === 'tanh') {
    for (let i = 0; i < rows * outputs; i++) yGradients[i] *= 1 - y[i] * y[i];
  }
  for (let row = 0; row < rows; row++) {
    const xStart = row * inputs;
    const yStart = row * outputs;
    for (let o = 0; o < outputs; o++) biasGradients[o] += yGradients[yStart + o];
    for (let i = 0, w = 0; i < inputs; i++) {
      const value = x[xStart + i];
      for (let o = 0; o < outputs; o++, w++) weightGradients[w] += value * yGradients[yStart + o];
    }
    if (xGradients === null) continue;
    for (let i = 0, w = 0; i < inputs; i++) {
      let sum = 0;
      for (let o = 0; o < outputs; o++, w++) sum += weights[w] * yGradients[yStart + o];
      xGradients[xStart + i] = sum;
    }
  }
}

function adam(state: AdamState, { learningRate, gradientScale, step }: AdamStep): void {
  const { parameters, gradients, firstMoments, secondMoments } = state;
  const { beta1, beta2, epsilon } = ADAM;
  const firstCorrection = 1 / (1 - beta1 ** step);
  const secondCorrection = 1 / (1 - beta2 ** step);
  for (let i = 0; i < parameters.length; i++) {
    const gradient = gradients[i] * gradientScale;
    const first = beta1 * firstMoments[i] + (1 - beta1) * gradient;
    const second = beta2 * secondMoments[i] + (1 - beta2) * gradient * gradient;
    firstMoments[i] = first;
    secondMoments[i] = second;
    parameters[i] -=
      (learningRate * first * firstCorrection) / (Math.sqrt(second * secondCorrection) + epsilon);
  }
}
