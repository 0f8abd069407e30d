import { type ActorCriticShape, actorLayerSizes } from './actor-critic.ts';
import { CategoricalHeads } from './categorical-heads.ts';
import type { FloatArray, Kernels } from './kernels.ts';
import { MultilayerPerceptron, parameterCount } from './multilayer-perceptron.ts';
import { normalizeRow, type RunningNormalizer } from './running-normalizer.ts';

/** The policy that plays a rollout, on memory that threads can share: published before each rollout, read by all. */
export interface PublishedPolicy {
  /** Of the actor. */
  readonly parameters: Float32Array;
  /** Mean and standard deviation that observations are normalized by. */
  readonly mean: Float64Array;
  readonly deviation: Float64Array;
  /** One number: added to the logit of the bin in force of each head. */
  readonly keepBonus: Float64Array;
}

export function allocatePolicy(shape: ActorCriticShape): PublishedPolicy {
  const doubles = (length: number) => new Float64Array(new SharedArrayBuffer(8 * length));
  return {
    parameters: new Float32Array(new SharedArrayBuffer(4 * parameterCount(actorLayerSizes(shape)))),
    mean: doubles(shape.observationSize),
    deviation: doubles(shape.observationSize),
    keepBonus: doubles(1),
  };
}

/** Lets the players of the next rollout act like this. */
export function publishPolicy(
  to: PublishedPolicy,
  policy: {
    readonly parameters: FloatArray;
    readonly observations: RunningNormalizer;
    readonly keepBonus: number;
  },
): void {
  to.parameters.set(policy.parameters);
  policy.observations.writeScale(to.mean, to.deviation);
  to.keepBonus[0] = policy.keepBonus;
}

/** The actor of a published policy on kernels of one's own. */
export class ActingPolicy {
  readonly heads: CategoricalHeads;
  readonly #published: PublishedPolicy;
  readonly #own: FloatArray;
  readonly #network: MultilayerPerceptron;
  readonly #normalized: FloatArray;

  constructor(published: PublishedPolicy, shape: ActorCriticShape, kernels: Kernels, maxRows: number) {
    const sizes = actorLayerSizes(shape);
    this.heads = new CategoricalHeads(shape.headSizes);
    this.#published = published;
    this.#own = kernels.allocate(published.parameters.length);
    this.#network = new MultilayerPerceptron(
      kernels,
      sizes,
      this.#own,
      kernels.allocate(this.#own.length),
      maxRows,
    );
    this.#normalized = kernels.allocate(maxRows * shape.observationSize);
  }

  /** Takes over what has been published. */
  refresh(): void {
    this.#own.set(this.#published.parameters);
  }

  /** Log-probabilities of all bins for rows of observations. Overwritten by the next call. */
  logProbabilities(observations: Float32Array, binsInForce: Int32Array, rows: number): FloatArray {
    const { mean, deviation, keepBonus } = this.#published;
    for (let row = 0; row < rows; row++)
      normalizeRow(observations, row, { mean, deviation }, this.#normalized, row);
    const logits = this.#network.forward(this.#normalized, rows);
    this.heads.favor(logits, binsInForce, keepBonus[0], rows);
    this.heads.normalize(logits, rows);
    return logits;
  }
}
