import { RandomStream } from '@servegym/simulator';
import { ActorCritic } from './actor-critic.ts';
import { generalizedAdvantages } from './generalized-advantage.ts';
import type { FloatArray, Kernels } from './kernels.ts';
import { RUNNING, TRUNCATED } from './learning-environment.ts';
import { ppoLossGradient } from './ppo-loss.ts';
import { Minibatch, Rollout } from './rollout.ts';
import { RunningNormalizer } from './running-normalizer.ts';
import { subtractTraceBaseline } from './trace-baseline.ts';
import type { ActorWeights } from './trained-actor.ts';
import type { VectorEnvironment } from './vector-environment.ts';

/** Names are those of Schulman et al., "Proximal Policy Optimization Algorithms", 2017, and of CleanRL. */
export interface PpoOptions {
  /** Seed of the weights, of the actions drawn and of the minibatches. */
  readonly seed: number;
  /** Actions to learn from, over all environments; rounded up to whole rollouts. */
  readonly totalSteps: number;
  /** Actions that each environment plays between two updates. */
  readonly rolloutSteps: number;
  /** Neighbouring environments that play the same traces, for the advantage baseline; 1 is none. */
  readonly groupSize: number;
  /** Passes over a rollout. */
  readonly epochs: number;
  readonly minibatchSize: number;
  /** Units of the hidden layers of actor and critic. */
  readonly hidden: readonly number[];
  /**
   * Added to the logit of the bin in force of each head, at the start and at the end; linear between. Where a change has
   * a price that is paid at once and a worth that shows later, it lets the first policies hold a configuration for long
   * enough to see that worth.
   */
  readonly keepBonus: readonly [start: number, end: number];
  /** Falls linearly to 0. */
  readonly learningRate: number;
  readonly gamma: number;
  readonly gaeLambda: number;
  readonly clipCoef: number;
  /** Weight of the entropy at the start and at the end; linear between. */
  readonly entropyCoef: readonly [start: number, end: number];
  readonly valueCoef: number;
  readonly maxGradNorm: number;
  /** An update ends early once the new policy is this far from the old one, nats. */
  readonly targetKl: number;
}

export const PPO_DEFAULTS = {
  rolloutSteps: 64,
  groupSize: 4,
  epochs: 8,
  minibatchSize: 256,
  hidden: [64, 64],
  keepBonus: [0, 0],
  learningRate: 1e-3,
  gamma: 0.97,
  gaeLambda: 0.95,
  clipCoef: 0.2,
  entropyCoef: [0.01, 0.001],
  valueCoef: 0.5,
  maxGradNorm: 0.5,
  targetKl: 0.03,
} as const satisfies Omit<PpoOptions, 'seed' | 'totalSteps'>;

/** What one update did. */
export interface PpoUpdate {
  /** Actions learned from so far. */
  readonly steps: number;
  /** Episodes that ended during the rollout. */
  readonly episodes: number;
  /** Mean of their undiscounted returns; `null` when none ended. */
  readonly meanReturn: number | null;
  /** Means over the minibatches. Entropy and divergence in nats, entropy summed over the heads. */
  readonly policyLoss: number;
  readonly valueLoss: number;
  readonly entropy: number;
  readonly approxKl: number;
  /** Share of the samples whose probability ratio left the clip range. */
  readonly clipFraction: number;
  /** Share of the returns' variance that the critic had foreseen; at most 1. */
  readonly explainedVariance: number;
  readonly learningRate: number;
  readonly entropyCoef: number;
  readonly keepBonus: number;
  readonly minibatches: number;
  /** Largest distance from 1 of a probability ratio in the first minibatch: 0, or acting and learning disagree. */
  readonly firstRatioError: number;
}

/** Proximal policy optimization. Deterministic: the same options and environments give the same weights, bit for bit. */
export class Ppo {
  readonly options: PpoOptions;
  readonly network: ActorCritic;
  /** Of the observations that the network sees. */
  readonly observations: RunningNormalizer;
  /** Of the discounted returns; rewards are divided by their deviation. */
  readonly returns = new RunningNormalizer(1);
  #steps = 0;
  readonly #environments: VectorEnvironment;
  readonly #rollout: Rollout;
  readonly #minibatch: Minibatch;
  readonly #actionRandom: RandomStream;
  readonly #shuffleRandom: RandomStream;
  /** Of each environment's running episode. */
  readonly #discountedReturns: Float64Array;
  readonly #episodeReturns: Float64Array;

  constructor(environments: VectorEnvironment, kernels: Kernels, options: PpoOptions) {
    const { count, observationSize, headSizes } = environments;
    if (count % options.groupSize !== 0) {
      throw new RangeError(
        `Expected \`groupSize\` to divide the ${count} environments, got ${options.groupSize}`,
      );
    }
    this.options = options;
    this.#environments = environments;
    const shape = { observationSize, headSizes, hidden: options.hidden };
    this.network = new ActorCritic(kernels, shape, Math.max(count, options.minibatchSize));
    this.network.initialize(new RandomStream(options.seed, 'weights'));
    this.observations = new RunningNormalizer(observationSize);
    this.#rollout = new Rollout(kernels, environments, options.rolloutSteps);
    this.#minibatch = new Minibatch(kernels, options.minibatchSize, observationSize, headSizes.length);
    this.#actionRandom = new RandomStream(options.seed, 'actions');
    this.#shuffleRandom = new RandomStream(options.seed, 'minibatches');
    this.#discountedReturns = new Float64Array(count);
    this.#episodeReturns = new Float64Array(count);
  }

  get steps(): number {
    return this.#steps;
  }

  get finished(): boolean {
    return this.#steps >= this.options.totalSteps;
  }

  /** A copy of what has been learned so far. */
  actorWeights(): ActorWeights {
    const { shape, keepBonus, adam, actorParameterCount } = this.network;
    return {
      shape,
      keepBonus,
      moments: this.observations.moments,
      parameters: adam.parameters.slice(0, actorParameterCount),
    };
  }

  /** Plays one rollout and learns from it. */
  update(): PpoUpdate {
    const progress = Math.min(1, this.#steps / this.options.totalSteps);
    const along = ([start, end]: readonly [number, number]) => start + (end - start) * progress;
    const schedule = {
      learningRate: this.options.learningRate * (1 - progress),
      entropyCoef: along(this.options.entropyCoef),
      keepBonus: along(this.options.keepBonus),
    };
    this.network.keepBonus = schedule.keepBonus;
    const finishedReturns = this.#collect();
    this.#computeAdvantages();
    const learned = this.#learn(schedule);
    this.#steps += this.#rollout.size;
    return {
      steps: this.#steps,
      episodes: finishedReturns.length,
      meanReturn: finishedReturns.length > 0 ? mean(finishedReturns) : null,
      ...learned,
      explainedVariance: explainedVariance(this.#rollout.values, this.#rollout.targets),
      ...schedule,
    };
  }

  /** Plays `rolloutSteps` actions in every environment. Returns the returns of the episodes that ended. */
  #collect(): number[] {
    const environments = this.#environments;
    const rollout = this.#rollout;
    const { network } = this;
    const { heads } = network;
    const { gamma, rolloutSteps } = this.options;
    const { count } = environments;
    const actions = new Int32Array(count * heads.sizes.length);
    const finishedReturns: number[] = [];
    rollout.boundaries.length = 0;

    for (let t = 0; t < rolloutSteps; t++) {
      const first = t * count;
      for (let e = 0; e < count; e++) {
        this.observations.observe(environments.observations, e);
      }
      const seen = rollout.observationRows(first, count);
      for (let e = 0; e < count; e++) this.observations.normalize(environments.observations, e, seen, e);
      rollout.seeds.set(environments.seeds, first);
      rollout.stepIndices.set(environments.stepIndices, first);

      rollout.binsInForce.set(environments.binsInForce, first * heads.sizes.length);
      const logProbabilities = network.logProbabilities(seen, environments.binsInForce, count);
      for (let e = 0; e < count; e++) {
        heads.sample(logProbabilities, e, actions, this.#actionRandom);
        rollout.logProbabilities[first + e] = heads.logProbability(logProbabilities, e, actions);
      }
      rollout.actions.set(actions, first * heads.sizes.length);

      environments.step(actions);
      rollout.ends.set(environments.ends, first);
      for (let e = 0; e < count; e++) {
        const reward = environments.rewards[e]!;
        if (!Number.isFinite(reward)) {
          throw new RangeError(`Expected finite rewards, got ${reward} on trace ${rollout.seeds[first + e]}`);
        }
        const end = environments.ends[e]!;
        this.#episodeReturns[e]! += reward;
        this.#discountedReturns[e] = gamma * this.#discountedReturns[e]! + reward;
        this.returns.observe(this.#discountedReturns, e);
        rollout.rewards[first + e] = reward / this.returns.deviation(0);
        if (end === TRUNCATED) this.#markBoundary(first + e, environments.lastObservations, e);
        if (end === RUNNING && t === rolloutSteps - 1)
          this.#markBoundary(first + e, environments.observations, e);
        if (end === RUNNING) continue;
        finishedReturns.push(this.#episodeReturns[e]!);
        this.#episodeReturns[e] = 0;
        this.#discountedReturns[e] = 0;
      }
    }
    return finishedReturns;
  }

  /** Keeps the observation that an action led to, where the rollout does not go on from it. */
  #markBoundary(at: number, observations: Float32Array, e: number): void {
    const { boundaries, boundaryObservations } = this.#rollout;
    this.observations.normalize(observations, e, boundaryObservations, boundaries.length);
    boundaries.push(at);
  }

  #computeAdvantages(): void {
    const rollout = this.#rollout;
    const { gamma, gaeLambda, groupSize } = this.options;
    this.#foresee(rollout.observations, rollout.size, (row, value) => {
      rollout.values[row] = value;
    });
    this.#foresee(rollout.boundaryObservations, rollout.boundaries.length, (row, value) => {
      rollout.nextValues[rollout.boundaries[row]!] = value;
    });
    generalizedAdvantages(rollout, gamma, gaeLambda, rollout.advantages);
    for (let at = 0; at < rollout.size; at++) {
      rollout.targets[at] = rollout.advantages[at]! + rollout.values[at]!;
    }
    subtractTraceBaseline(rollout, groupSize, rollout.advantages);
    standardize(rollout.advantages);
  }

  /** Asks the critic for the value of each row. */
  #foresee(observations: FloatArray, rows: number, keep: (row: number, value: number) => void): void {
    const size = this.observations.size;
    const { minibatchSize } = this.options;
    for (let start = 0; start < rows; start += minibatchSize) {
      const count = Math.min(minibatchSize, rows - start);
      const values = this.network.critic.forward(
        observations.subarray(start * size, (start + count) * size),
        count,
      );
      for (let row = 0; row < count; row++) keep(start + row, values[row]!);
    }
  }

  /** Goes over the rollout in shuffled minibatches, until done or too far from the policy that played it. */
  #learn({ learningRate, entropyCoef }: { learningRate: number; entropyCoef: number }) {
    const { epochs, minibatchSize, clipCoef, valueCoef, maxGradNorm, targetKl } = this.options;
    const rollout = this.#rollout;
    const order = Int32Array.from({ length: rollout.size }, (_, at) => at);
    const sums = { policyLoss: 0, valueLoss: 0, entropy: 0, approxKl: 0, clipFraction: 0 };
    let firstRatioError = 0;
    let minibatches = 0;
    passes: for (let epoch = 0; epoch < epochs; epoch++) {
      shuffle(order, this.#shuffleRandom);
      for (let start = 0; start < rollout.size; start += minibatchSize) {
        this.#minibatch.gather(rollout, order.subarray(start, start + minibatchSize));
        const loss = ppoLossGradient(this.network, this.#minibatch, { clipCoef, entropyCoef, valueCoef });
        if (minibatches === 0) firstRatioError = loss.ratioError;
        sums.policyLoss += loss.policyLoss;
        sums.valueLoss += loss.valueLoss;
        sums.entropy += loss.entropy;
        sums.approxKl += loss.approxKl;
        sums.clipFraction += loss.clipFraction;
        minibatches++;
        if (loss.approxKl > targetKl) {
          this.network.adam.gradients.fill(0);
          break passes;
        }
        this.network.descend(learningRate, maxGradNorm);
      }
    }
    return {
      policyLoss: sums.policyLoss / minibatches,
      valueLoss: sums.valueLoss / minibatches,
      entropy: sums.entropy / minibatches,
      approxKl: sums.approxKl / minibatches,
      clipFraction: sums.clipFraction / minibatches,
      minibatches,
      firstRatioError,
    };
  }
}

/** Brings the values to mean 0 and variance 1. */
function standardize(values: Float64Array): void {
  const center = mean(values);
  const deviation = Math.sqrt(variance(values)) + 1e-8;
  for (let i = 0; i < values.length; i++) values[i] = (values[i]! - center) / deviation;
}

/** 1 - Var(targets - values) / Var(targets). */
function explainedVariance(values: Float64Array, targets: Float64Array): number {
  const errors = targets.map((target, i) => target - values[i]!);
  return 1 - variance(errors) / (variance(targets) + 1e-12);
}

function variance(values: Float64Array): number {
  const center = mean(values);
  let squares = 0;
  for (const value of values) squares += (value - center) ** 2;
  return squares / values.length;
}

function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}

/** Fisher and Yates. */
function shuffle(order: Int32Array, random: RandomStream): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    const swapped = order[i]!;
    order[i] = order[j]!;
    order[j] = swapped;
  }
}
