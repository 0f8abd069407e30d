import { EnvironmentError } from '@servegym/openenv/definition';
import { type ActorCriticShape, actorLayerSizes, CategoricalHeads } from './actor-critic.ts';
import { type DenseLayer, type FloatArray, type Kernels, simdKernels } from './kernels.ts';
import { denseLayers, MultilayerPerceptron, parameterCount } from './multilayer-perceptron.ts';
import { type FeatureScale, type Moments, normalizeRow, RunningNormalizer } from './running-normalizer.ts';
import { decodeSafetensors, encodeSafetensors, type Tensor } from './safetensors.ts';

/** All that a trained policy needs to act. */
export interface ActorWeights {
  readonly shape: ActorCriticShape;
  /** Added to the logit of the bin in force of each head. */
  readonly keepBonus: number;
  /** Of the observations it was trained on. */
  readonly moments: Moments;
  /** Weights [inputs x outputs] and bias of each layer in turn. */
  readonly parameters: FloatArray;
}

/** A network that acts on observations as they are shown; write its `parameters`. */
export class Actor {
  readonly heads: CategoricalHeads;
  readonly parameters: FloatArray;
  readonly #network: MultilayerPerceptron;
  readonly #normalized: FloatArray;

  constructor(shape: ActorCriticShape, kernels: Kernels, maxRows: number) {
    const sizes = actorLayerSizes(shape);
    const count = parameterCount(sizes);
    this.heads = new CategoricalHeads(shape.headSizes);
    this.parameters = kernels.allocate(count);
    this.#normalized = kernels.allocate(maxRows * shape.observationSize);
    const unused = kernels.allocate(count);
    this.#network = new MultilayerPerceptron(kernels, sizes, this.parameters, unused, maxRows);
  }

  /** Logits of all bins for rows of observations. Overwritten by the next call. @param bins in force */
  logits(
    observations: ArrayLike<number>,
    bins: Int32Array,
    rows: number,
    { scale, keepBonus }: { readonly scale: FeatureScale; readonly keepBonus: number },
  ): FloatArray {
    for (let row = 0; row < rows; row++) normalizeRow(observations, row, scale, this.#normalized, row);
    const logits = this.#network.forward(this.#normalized, rows);
    this.heads.favor(logits, bins, keepBonus, rows);
    return logits;
  }
}

/** Acts greedily: the likeliest bin of every head. */
export class TrainedActor {
  readonly #actor: Actor;
  readonly #by: { readonly scale: FeatureScale; readonly keepBonus: number };

  constructor(
    { shape, keepBonus, moments, parameters }: ActorWeights,
    kernels: Kernels = simdKernels(actingBytes(parameters)),
  ) {
    this.#actor = new Actor(shape, kernels, 1);
    this.#actor.parameters.set(parameters);
    this.#by = { scale: RunningNormalizer.from(moments).scale(), keepBonus };
  }

  /** Replaces the bins in force by those to set. */
  act(observation: ArrayLike<number>, bins: Int32Array): void {
    this.#actor.heads.mode(this.#actor.logits(observation, bins, 1, this.#by), 0, bins);
  }
}

/** Room for the parameters, their gradients, which acting leaves alone, and the activations, which are fewer. */
function actingBytes(parameters: FloatArray): number {
  return 4 * parameters.length * Float32Array.BYTES_PER_ELEMENT;
}

/**
 * Writes an actor as safetensors. The layers are `actor.0.weight` [outputs x inputs], `actor.0.bias`, `actor.1.weight`,
 * ... as PyTorch's `nn.Linear` has them, with tanh between. `observation.mean` and `observation.spread` (the sum of
 * squared distances over `observation.rows` rows) normalize what goes in; `keep_bonus` is added to the logit of the bin in
 * force. `metadata` is kept beside the shape.
 */
export function encodeActor(
  { shape, keepBonus, moments, parameters }: ActorWeights,
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const tensors: Record<string, Tensor> = {
    'observation.mean': { shape: [moments.mean.length], values: Float64Array.from(moments.mean) },
    'observation.spread': { shape: [moments.spread.length], values: Float64Array.from(moments.spread) },
    'observation.rows': { shape: [1], values: Float64Array.of(moments.rows) },
    keep_bonus: { shape: [1], values: Float64Array.of(keepBonus) },
  };
  for (const [l, { inputs, outputs, weights, bias }] of actorLayers(shape, parameters).entries()) {
    const values = transpose(weights, inputs, outputs);
    tensors[`actor.${l}.weight`] = { shape: [outputs, inputs], values };
    tensors[`actor.${l}.bias`] = { shape: [outputs], values: Float32Array.from(bias) };
  }
  return encodeSafetensors({ tensors, metadata: { ...metadata, shape: JSON.stringify(shape) } });
}

/** Reads what `encodeActor` wrote. @throws EnvironmentError `TENSOR_FILE` */
export function decodeActor(file: Uint8Array): {
  weights: ActorWeights;
  metadata: Readonly<Record<string, string>>;
} {
  const { tensors, metadata } = decodeSafetensors(file);
  const shape = readShape(metadata.shape);
  const moments = {
    rows: tensorOf(tensors, 'observation.rows', [1])[0],
    mean: [...tensorOf(tensors, 'observation.mean', [shape.observationSize])],
    spread: [...tensorOf(tensors, 'observation.spread', [shape.observationSize])],
  };
  const parameters = new Float32Array(parameterCount(actorLayerSizes(shape)));
  for (const [l, { inputs, outputs, weights, bias }] of actorLayers(shape, parameters).entries()) {
    weights.set(transpose(tensorOf(tensors, `actor.${l}.weight`, [outputs, inputs]), outputs, inputs));
    bias.set(tensorOf(tensors, `actor.${l}.bias`, [outputs]));
  }
  const keepBonus = tensorOf(tensors, 'keep_bonus', [1])[0];
  return { weights: { shape, keepBonus, moments, parameters }, metadata };
}

/** The layers of an actor over its parameters. */
export function actorLayers(shape: ActorCriticShape, parameters: FloatArray): DenseLayer[] {
  return denseLayers(actorLayerSizes(shape), parameters, parameters);
}

function readShape(text: string | undefined): ActorCriticShape {
  const shape = parseShape(text);
  const { observationSize, headSizes, hidden } = shape;
  const isSize = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
  if (!isSize(observationSize) || !headSizes?.every(isSize) || !hidden?.every(isSize)) {
    throw new EnvironmentError('TENSOR_FILE', 'Expected the metadata to have the `shape` of an actor');
  }
  return { observationSize: observationSize!, headSizes, hidden };
}

function parseShape(text: string | undefined): Partial<ActorCriticShape> {
  try {
    return JSON.parse(text ?? '{}') as Partial<ActorCriticShape>;
  } catch {
    return {};
  }
}

function tensorOf(
  tensors: Readonly<Record<string, Tensor>>,
  name: string,
  shape: readonly number[],
): FloatArray {
  const tensor = tensors[name];
  if (tensor?.shape.join() !== shape.join()) {
    const got = tensor ? `one of shape ${tensor.shape.join(' x ')}` : 'none';
    throw new EnvironmentError(
      'TENSOR_FILE',
      `Expected a tensor \`${name}\` of shape ${shape.join(' x ')}, got ${got}`,
    );
  }
  return tensor.values;
}

/** [rows x columns] to [columns x rows]. */
function transpose(matrix: FloatArray, rows: number, columns: number): Float32Array {
  const result = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++)
      result[column * rows + row] = matrix[row * columns + column];
  }
  return result;
}
