import { readFileSync } from 'node:fs';

/** Storage that kernels compute on. */
export type FloatArray = Float32Array | Float64Array;

/** A fully connected layer on a batch of rows. All matrices are row-major. */
export interface DenseLayer {
  readonly inputs: number;
  readonly outputs: number;
  /** `tanh` is applied to the result, or nothing. */
  readonly activation: 'tanh' | 'linear';
  /** [inputs x outputs]. */
  readonly weights: FloatArray;
  /** [outputs]. */
  readonly bias: FloatArray;
  /** Of the loss, like `weights` and `bias`; `denseBackward` adds to them. */
  readonly weightGradients: FloatArray;
  readonly biasGradients: FloatArray;
}

/** Parameters that Adam updates, and its moments, all of one length. */
export type AdamState = Readonly<
  Record<'parameters' | 'gradients' | 'firstMoments' | 'secondMoments', FloatArray>
>;

/** One step of Adam. */
export interface AdamStep {
  readonly learningRate: number;
  /** The gradients are multiplied by it first (clipping by the global norm). */
  readonly gradientScale: number;
  /** Steps taken, this one included: 1, 2, ... */
  readonly step: number;
}

/** Decay of Adam's moments, and what keeps its division finite. Kingma and Ba, ICLR 2015; epsilon as PPO uses it. */
export const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-5 } as const;

/**
 * The numerical work of training. A row's results do not depend on the other rows of its batch, bit for bit: what is
 * computed while acting is computed again, exactly, while learning.
 */
export interface Kernels {
  readonly name: string;
  /** Zeros that these kernels can compute on. */
  allocate(length: number): FloatArray;
  /** y = activation(x W + b). `x` is [rows x inputs], `y` is [rows x outputs]. */
  denseForward(layer: DenseLayer, x: FloatArray, y: FloatArray, rows: number): void;
  /**
   * Adds the layer's gradients, given its last `x` and `y` and the loss's gradient in `y`, which it overwrites. The
   * gradient in `x` goes to `xGradients`, unless that is `null`.
   */
  denseBackward(
    layer: DenseLayer,
    x: FloatArray,
    y: FloatArray,
    yGradients: FloatArray,
    xGradients: FloatArray | null,
    rows: number,
  ): void;
  adam(state: AdamState, step: AdamStep): void;
}

/** Exports of `kernels.as`. Arrays are passed as byte offsets. */
type SimdExports = Readonly<Record<'denseForward' | 'denseBackward' | 'adam', (...values: number[]) => void>>;

const PAGE_BYTES = 65_536;
/** Enough to train with. Reserved, not used: the system gives pages out as they are touched. Growing would detach every array. */
const TRAINING_BYTES = 256 * 2 ** 20;
/** Arrays start on a cache line. Offset 0 stays free: it stands for no array. */
const ALIGNMENT = 64;

let compiled: WebAssembly.Module | undefined;

/**
 * Kernels in WebAssembly on lanes of four float32, over a memory of their own that ends with them.
 * @param bytes of all arrays that they will allocate; 256 MiB by default
 */
export function simdKernels(bytes = TRAINING_BYTES): Kernels {
  compiled ??= new WebAssembly.Module(readFileSync(new URL('simd-kernels.wasm', import.meta.url)));
  const pages = Math.ceil(bytes / PAGE_BYTES);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
  const simd = exports as unknown as SimdExports;
  let free = ALIGNMENT;

  function offset(array: FloatArray | null): number {
    if (array === null) return 0;
    if (array.buffer !== memory.buffer) throw new TypeError('Expected an array that these kernels allocated');
    return array.byteOffset;
  }

  return {
    name: 'simd',
    allocate(length) {
      const start = free;
      const end = start + length * Float32Array.BYTES_PER_ELEMENT;
      if (end > memory.buffer.byteLength) {
        throw new RangeError(
          `Expected all arrays to fit in ${memory.buffer.byteLength} bytes, asked for ${end}`,
        );
      }
      free = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
      return new Float32Array(memory.buffer, start, length);
    },

    denseForward({ weights, bias, inputs, outputs, activation }: DenseLayer, x, y, rows) {
      const tanh = activation === 'tanh' ? 1 : 0;
      simd.denseForward(offset(x), offset(weights), offset(bias), offset(y), rows, inputs, outputs, tanh);
    },

    denseBackward(layer: DenseLayer, x, y, yGradients, xGradients, rows) {
      const { weights, weightGradients, biasGradients, inputs, outputs, activation } = layer;
      const arrays = [x, weights, y, yGradients, xGradients, weightGradients, biasGradients];
      simd.denseBackward(...arrays.map(offset), rows, inputs, outputs, activation === 'tanh' ? 1 : 0);
    },

    adam(state: AdamState, { learningRate, gradientScale, step }: AdamStep) {
      const { beta1, beta2, epsilon } = ADAM;
      // rate * (first * c1) / (sqrt(second * c2) + epsilon), with both corrections moved out of the loop.
      const firstCorrection = 1 / (1 - beta1 ** step);
      const secondCorrection = Math.sqrt(1 / (1 - beta2 ** step));
      const { parameters, gradients, firstMoments, secondMoments } = state;
      simd.adam(
        ...[parameters, gradients, firstMoments, secondMoments].map(offset),
        parameters.length,
        gradientScale,
        beta1,
        beta2,
        (learningRate * firstCorrection) / secondCorrection,
        epsilon / secondCorrection,
      );
    },
  };
}
