import type { RandomStream } from '@servegym/simulator';
import type { AdamState, FloatArray, Kernels } from './kernels.ts';
import { type LayerSizes, MultilayerPerceptron, parameterCount } from './multilayer-perceptron.ts';

/**
 * A policy that chooses one bin in each of several heads, independently given the observation. A row of logits, or of
 * log-probabilities, holds those of all heads, one after the other; a row of actions holds one bin a head.
 */
export class CategoricalHeads {
  /** Bins of each head. */
  readonly sizes: readonly number[];
  /** Logits of a row. */
  readonly logitCount: number;
  /** Of one head, while its gradient is written. */
  readonly #probabilities: Float64Array;

  constructor(sizes: readonly number[]) {
    this.sizes = sizes;
    this.logitCount = sizes.reduce((sum, size) => sum + size, 0);
    this.#probabilities = new Float64Array(Math.max(...sizes));
  }

  /** Adds `bonus` to the logit of one bin in each head of each row, in place. */
  favor(logits: FloatArray, bins: Int32Array, bonus: number, rows: number): void {
    let bin = 0;
    let at = 0;
    for (let row = 0; row < rows; row++) {
      for (const size of this.sizes) {
        logits[at + bins[bin++]] += bonus;
        at += size;
      }
    }
  }

  /** Turns rows of logits into rows of log-probabilities, in place. */
  normalize(logits: FloatArray, rows: number): void {
    for (let row = 0, at = 0; row < rows; row++) {
      for (const size of this.sizes) {
        const end = at + size;
        let largest = logits[at];
        for (let k = at + 1; k < end; k++) if (logits[k] > largest) largest = logits[k];
        let sum = 0;
        for (let k = at; k < end; k++) sum += Math.exp(logits[k] - largest);
        const logSum = largest + Math.log(sum);
        for (let k = at; k < end; k++) logits[k] -= logSum;
        at = end;
      }
    }
  }

  /** Draws the action of a row. */
  sample(logProbabilities: FloatArray, row: number, actions: Int32Array, random: RandomStream): void {
    const firstBin = row * this.sizes.length;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      const last = this.sizes[head] - 1;
      let left = random.uniform() - Math.exp(logProbabilities[at]);
      let bin = 0;
      while (left >= 0 && bin < last) left -= Math.exp(logProbabilities[at + ++bin]);
      actions[firstBin + head] = bin;
    }
  }

  /** Writes the likeliest action of a row, given logits or log-probabilities. */
  mode(logits: FloatArray, row: number, actions: Int32Array): void {
    const firstBin = row * this.sizes.length;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      let best = 0;
      for (let bin = 1; bin < this.sizes[head]; bin++) if (logits[at + bin] > logits[at + best]) best = bin;
      actions[firstBin + head] = best;
    }
  }

  /** Log of the probability of a row's action. */
  logProbability(logProbabilities: FloatArray, row: number, actions: Int32Array): number {
    const firstBin = row * this.sizes.length;
    let total = 0;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      total += logProbabilities[at + actions[firstBin + head]];
    }
    return total;
  }

  /**
   * Writes, into a row of `logitGradients`, the gradient of
   * `logProbabilityWeight * log p(action) + entropyWeight * entropy`. Returns the entropy of the row, nats, summed over
   * the heads.
   */
  gradient(
    logProbabilities: FloatArray,
    row: number,
    actions: Int32Array,
    logProbabilityWeight: number,
    entropyWeight: number,
    logitGradients: FloatArray,
  ): number {
    const firstBin = row * this.sizes.length;
    let totalEntropy = 0;
    for (let head = 0, at = row * this.logitCount; head < this.sizes.length; at += this.sizes[head], head++) {
      const end = at + this.sizes[head];
      let entropy = 0;
      for (let k = at; k < end; k++) {
        const probability = Math.exp(logProbabilities[k]);
        this.#probabilities[k - at] = probability;
        entropy -= probability * logProbabilities[k];
      }
      for (let k = at; k < end; k++) {
        const surprise = -logProbabilities[k];
        logitGradients[k] =
          this.#probabilities[k - at] * (entropyWeight * (surprise - entropy) - logProbabilityWeight);
      }
      logitGradients[at + actions[firstBin + head]] += logProbabilityWeight;
      totalEntropy += entropy;
    }
    return totalEntropy;
  }
}

/** Brings the numbers into an order drawn uniformly, in place. Fisher and Yates. */
export function shuffle(order: Int32Array, random: RandomStream): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    const swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}

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
    const [firstMoments, secondMoments] = [kernels.allocate(count), kernels.allocate(count)];
    this.adam = { parameters, gradients, firstMoments, secondMoments };
    const network = (sizes: LayerSizes, start: number, end: number) => {
      const own = [parameters.subarray(start, end), gradients.subarray(start, end)] as const;
      return new MultilayerPerceptron(kernels, sizes, ...own, maxRows);
    };
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
