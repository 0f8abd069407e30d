import type { RandomStream } from '@servegym/simulator';
import { CategoricalHeads } from './categorical-heads.ts';
import type { AdamState, FloatArray, Kernels } from './kernels.ts';
import { type LayerSizes, MultilayerPerceptron, parameterCount } from './multilayer-perceptron.ts';

/** Layer sizes of actor and critic. */
export interface ActorCriticShape {
  readonly observationSize: number;
  /** Bins of each head of an action. */
  readonly headSizes: readonly number[];
  /** Units of the hidden layers. */
  readonly hidden: readonly number[];
}

/** Layers of an actor of this shape. */
export function actorLayerSizes({ observationSize, headSizes, hidden }: ActorCriticShape): LayerSizes {
  return [observationSize, ...hidden, headSizes.reduce((sum, size) => sum + size, 0)];
}

/** All that training changes in the networks. */
export interface NetworkSnapshot {
  /** The actor's parameters and then the critic's, and Adam's moments of them. */
  readonly parameters: Float32Array;
  readonly firstMoments: Float32Array;
  readonly secondMoments: Float32Array;
  /** Steps that Adam has taken. */
  readonly adamSteps: number;
}

/** Small last layer: the first policy is nearly uniform. */
const ACTOR_OUTPUT_GAIN = 0.01;
const CRITIC_OUTPUT_GAIN = 1;

/**
 * A network that chooses and a network that foresees the return, side by side in one vector of parameters, and the Adam
 * that trains them.
 */
export class ActorCritic {
  readonly shape: ActorCriticShape;
  readonly heads: CategoricalHeads;
  /** From normalized observations to logits. */
  readonly actor: MultilayerPerceptron;
  /** From normalized observations to the value, one a row. */
  readonly critic: MultilayerPerceptron;
  /** The actor's parameters, `actorParameterCount` of them, and then the critic's. */
  readonly adam: AdamState;
  readonly actorParameterCount: number;
  /**
   * Added to the logit of the bin in force of each head: how strongly a policy that has learned nothing keeps the
   * configuration as it is.
   */
  keepBonus = 0;
  #kernels: Kernels;
  #adamSteps = 0;

  constructor(kernels: Kernels, shape: ActorCriticShape, maxRows: number) {
    this.#kernels = kernels;
    this.shape = shape;
    this.heads = new CategoricalHeads(shape.headSizes);
    const actorSizes = actorLayerSizes(shape);
    const criticSizes: LayerSizes = [shape.observationSize, ...shape.hidden, 1];
    this.actorParameterCount = parameterCount(actorSizes);
    const count = this.actorParameterCount + parameterCount(criticSizes);
    const [parameters, gradients] = [kernels.allocate(count), kernels.allocate(count)];
    this.adam = {
      parameters,
      gradients,
      firstMoments: kernels.allocate(count),
      secondMoments: kernels.allocate(count),
    };
    const network = (sizes: LayerSizes, start: number, end: number) =>
      new MultilayerPerceptron(
        kernels,
        sizes,
        parameters.subarray(start, end),
        gradients.subarray(start, end),
        maxRows,
      );
    this.actor = network(actorSizes, 0, this.actorParameterCount);
    this.critic = network(criticSizes, this.actorParameterCount, count);
  }

  /** Log-probabilities of all bins for rows of normalized observations. Overwritten by the next call. */
  logProbabilities(observations: FloatArray, binsInForce: Int32Array, rows: number): FloatArray {
    const logits = this.actor.forward(observations, rows);
    this.heads.favor(logits, binsInForce, this.keepBonus, rows);
    this.heads.normalize(logits, rows);
    return logits;
  }

  initialize(random: RandomStream): void {
    this.actor.initialize(random, ACTOR_OUTPUT_GAIN);
    this.critic.initialize(random, CRITIC_OUTPUT_GAIN);
  }

  /** A copy of the parameters and of what Adam remembers. */
  snapshot(): NetworkSnapshot {
    const { parameters, firstMoments, secondMoments } = this.adam;
    return {
      parameters: Float32Array.from(parameters),
      firstMoments: Float32Array.from(firstMoments),
      secondMoments: Float32Array.from(secondMoments),
      adamSteps: this.#adamSteps,
    };
  }

  restore({ parameters, firstMoments, secondMoments, adamSteps }: NetworkSnapshot): void {
    this.adam.parameters.set(parameters);
    this.adam.firstMoments.set(firstMoments);
    this.adam.secondMoments.set(secondMoments);
    this.#adamSteps = adamSteps;
  }

  /** Steps against the gradients, shortened to a norm of `maxGradNorm` where they are longer, and clears them. */
  descend(learningRate: number, maxGradNorm: number): void {
    const { gradients } = this.adam;
    let squares = 0;
    for (let i = 0; i < gradients.length; i++) squares += gradients[i] * gradients[i];
    const gradientScale = Math.min(1, maxGradNorm / (Math.sqrt(squares) + 1e-6));
    this.#adamSteps++;
    this.#kernels.adam(this.adam, { learningRate, gradientScale, step: this.#adamSteps });
    gradients.fill(0);
  }
}
