import { readFileSync } from 'node:fs';
import {
  ADAM,
  type AdamState,
  type AdamStep,
  type DenseLayer,
  type FloatArray,
  type Kernels,
} from './kernels.ts';

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

  function offset(array: FloatArray): number {
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
      simd.denseBackward(
        offset(x),
        offset(layer.weights),
        offset(y),
        offset(yGradients),
        xGradients === null ? 0 : offset(xGradients),
        offset(layer.weightGradients),
        offset(layer.biasGradients),
        rows,
        layer.inputs,
        layer.outputs,
        layer.activation === 'tanh' ? 1 : 0,
      );
    },

    adam(state: AdamState, { learningRate, gradientScale, step }: AdamStep) {
      const { beta1, beta2, epsilon } = ADAM;
      // rate * (first * c1) / (sqrt(second * c2) + epsilon), with both corrections moved out of the loop.
      const firstCorrection = 1 / (1 - beta1 ** step);
      const secondCorrection = Math.sqrt(1 / (1 - beta2 ** step));
      simd.adam(
        offset(state.parameters),
        offset(state.gradients),
        offset(state.firstMoments),
        offset(state.secondMoments),
        state.parameters.length,
        gradientScale,
        beta1,
        beta2,
        (learningRate * firstCorrection) / secondCorrection,
        epsilon / secondCorrection,
      );
    },
  };
}
