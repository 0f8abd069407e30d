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
export interface AdamState {
  readonly parameters: FloatArray;
  readonly gradients: FloatArray;
  readonly firstMoments: FloatArray;
  readonly secondMoments: FloatArray;
}

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
