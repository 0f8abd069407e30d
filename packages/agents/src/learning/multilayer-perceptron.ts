import type { RandomStream } from '@servegym/simulator';
import type { DenseLayer, FloatArray, Kernels } from './kernels.ts';

/** Shape of a network: inputs, hidden layers (tanh), outputs (linear). */
export type LayerSizes = readonly [inputs: number, ...number[]];

/** Parameters a network of this shape has. */
export function parameterCount(sizes: LayerSizes): number {
  let count = 0;
  for (let l = 1; l < sizes.length; l++) count += (sizes[l - 1] + 1) * sizes[l];
  return count;
}

/**
 * Fully connected layers over parameters that somebody else owns: `parameters` and `gradients` hold the weights and then
 * the bias of each layer in turn. Keeps the activations of the last `forward` for `backward`.
 */
export class MultilayerPerceptron {
  readonly sizes: LayerSizes;
  readonly layers: readonly DenseLayer[];
  readonly #kernels: Kernels;
  readonly #maxRows: number;
  readonly #activations: FloatArray[];
  readonly #activationGradients: FloatArray[];
  #input: FloatArray;

  constructor(
    kernels: Kernels,
    sizes: LayerSizes,
    parameters: FloatArray,
    gradients: FloatArray,
    /** Most rows of a batch. */
    maxRows: number,
  ) {
    this.sizes = sizes;
    this.#kernels = kernels;
    this.#maxRows = maxRows;
    this.layers = denseLayers(sizes, parameters, gradients);
    this.#activations = this.layers.map((layer) => kernels.allocate(maxRows * layer.outputs));
    this.#activationGradients = this.layers.map((layer) => kernels.allocate(maxRows * layer.outputs));
    this.#input = kernels.allocate(0);
  }

  /** Orthogonal weights and zero bias. `outputGain` scales the last layer; the hidden ones have sqrt(2). */
  initialize(random: RandomStream, outputGain: number): void {
    for (const layer of this.layers) {
      const gain = layer === this.layers.at(-1) ? outputGain : Math.SQRT2;
      fillOrthogonal(layer.weights, layer.inputs, layer.outputs, gain, random);
      layer.bias.fill(0);
    }
  }

  /** Results of `rows` rows of `x`, which must stay as it is until `backward`. Overwritten by the next call. */
  forward(x: FloatArray, rows: number): FloatArray {
    if (rows > this.#maxRows) throw new RangeError(`Expected at most ${this.#maxRows} rows, got ${rows}`);
    this.#input = x;
    let input = x;
    for (const [l, layer] of this.layers.entries()) {
      this.#kernels.denseForward(layer, input, this.#activations[l], rows);
      input = this.#activations[l];
    }
    return input;
  }

  /** Gradient of the loss in the last results; write it before `backward`. */
  get outputGradients(): FloatArray {
    return this.#activationGradients.at(-1)!;
  }

  /** Adds to the gradients of the parameters those of the last `forward`. Overwrites `outputGradients`. */
  backward(rows: number): void {
    for (let l = this.layers.length - 1; l >= 0; l--) {
      const input = l === 0 ? this.#input : this.#activations[l - 1];
      const inputGradients = l === 0 ? null : this.#activationGradients[l - 1];
      const output = this.#activations[l];
      const outputGradients = this.#activationGradients[l];
      this.#kernels.denseBackward(this.layers[l], input, output, outputGradients, inputGradients, rows);
    }
  }
}

/** The layers over vectors that hold the weights and then the bias of each in turn. */
export function denseLayers(sizes: LayerSizes, parameters: FloatArray, gradients: FloatArray): DenseLayer[] {
  const layers: DenseLayer[] = [];
  let at = 0;
  for (let l = 1; l < sizes.length; l++) {
    const [inputs, outputs] = [sizes[l - 1], sizes[l]];
    const biasAt = at + inputs * outputs;
    const end = biasAt + outputs;
    layers.push({
      inputs,
      outputs,
      activation: l === sizes.length - 1 ? 'linear' : 'tanh',
      weights: parameters.subarray(at, biasAt),
      bias: parameters.subarray(biasAt, end),
      weightGradients: gradients.subarray(at, biasAt),
      biasGradients: gradients.subarray(biasAt, end),
    });
    at = end;
  }
  return layers;
}

/**
 * Random [rows x columns] matrix with orthonormal rows or columns, whichever are fewer, times `gain` (Gram and Schmidt
 * on normal draws). Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
 * networks", ICLR 2014.
 */
export function fillOrthogonal(
  matrix: FloatArray,
  rows: number,
  columns: number,
  gain: number,
  random: RandomStream,
): void {
  const count = Math.min(rows, columns);
  const length = Math.max(rows, columns);
  const basis: Float64Array[] = [];
  while (basis.length < count) {
    const vector = Float64Array.from({ length }, () => random.normal());
    for (const other of basis) {
      const overlap = dot(vector, other);
      for (let i = 0; i < length; i++) vector[i] -= overlap * other[i];
    }
    const norm = Math.sqrt(dot(vector, vector));
    for (let i = 0; i < length; i++) vector[i] /= norm;
    basis.push(vector);
  }
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      matrix[row * columns + column] = gain * (rows < columns ? basis[row][column] : basis[column][row]);
    }
  }
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
