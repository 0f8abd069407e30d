import { RandomStream } from '@servegym/simulator';
import { publishPolicy } from './acting-policy.ts';
import { ActorCritic } from './actor-critic.ts';
import { EpisodeLog } from './episode-log.ts';
import { generalizedAdvantages } from './generalized-advantage.ts';
import type { FloatArray, Kernels } from './kernels.ts';
import { RUNNING, TRUNCATED } from './learning-environment.ts';
import type { PpoCheckpoint } from './ppo-checkpoint.ts';
import { ppoLossGradient } from './ppo-loss.ts';
import { Minibatch, rolloutSize } from './rollout.ts';
import type { RolloutSource } from './rollout-source.ts';
import { normalizeRow, RunningNormalizer } from './running-normalizer.ts';
import { shuffle } from './shuffle.ts';
import { subtractTraceBaseline } from './trace-baseline.ts';
import type { ActorWeights } from './trained-actor.ts';

/** Names are those of Schulman et al., "Proximal Policy Optimization Algorithms", 2017, and of CleanRL. */
export interface PpoOptions {
  /** Seed of the weights and of the minibatches. */
  readonly seed: number;
  /** Actions to learn from, over all environments; rounded up to whole rollouts. */
  readonly totalSteps: number;
  /** Neighbouring environments that play the same traces, for the advantage baseline; 1 is none. */
  readonly groupSize: number;
  /** Passes over a rollout. */
  readonly epochs: number;
  readonly minibatchSize: number;
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
  /** Actions at the start from which only the critic learns: advantages mean nothing before it knows the policy. */
  readonly criticOnlySteps: number;
}

/** What suits most tasks; `SERVE_PPO` and the like change what theirs need. */
export const PPO_DEFAULTS = {
  groupSize: 4,
  epochs: 8,
  minibatchSize: 256,
  keepBonus: [0, 0],
  learningRate: 1e-3,
  gamma: 0.97,
  gaeLambda: 0.95,
  clipCoef: 0.2,
  entropyCoef: [0.01, 0.001],
  valueCoef: 0.5,
  maxGradNorm: 0.5,
  targetKl: 0.03,
  criticOnlySteps: 0,
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

/** Where learning starts from. At random weights and a nearly uniform policy where nothing is said. */
export interface PpoStart {
  /** Where another run was; the weights then come out as if it had not stopped. */
  readonly checkpoint?: PpoCheckpoint;
  /** An actor that knows something already, and the moments of what it saw and, where it has them, of what it earned. */
  readonly actor?: ActorWeights;
  /** What a policy that has learned nothing leans to: `strength` is added to the logit of one bin of each head. */
  readonly prior?: { readonly bins: readonly number[]; readonly strength: number };
}

/** Proximal policy optimization. Deterministic: the same options and environments give the same weights, bit for bit. */
export class Ppo {
  readonly options: PpoOptions;
  readonly network: ActorCritic;
  /** Of the observations that the network sees. */
  readonly observations: RunningNormalizer;
  /** Of the discounted returns; rewards are divided by their deviation. */
  readonly returns: RunningNormalizer;
  #steps: number;
  readonly #source: RolloutSource;
  readonly #log: EpisodeLog;
  readonly #size: number;
  readonly #minibatch: Minibatch;
  /** Of the rollout: normalized observations, and all that is made of them entry by entry. */
  readonly #normalized: FloatArray;
  readonly #nextNormalized: FloatArray;
  readonly #rewards: Float64Array;
  readonly #values: Float64Array;
  readonly #nextValues: Float64Array;
  readonly #advantages: Float64Array;
  readonly #targets: Float64Array;
  /** Of each environment's running episode. */
  readonly #discountedReturns: Float64Array;
  readonly #episodeReturns: Float64Array;

  /** With a checkpoint, `source` must go on from where it was: `resumePoint` tells. */
  constructor(source: RolloutSource, kernels: Kernels, options: PpoOptions, start: PpoStart = {}) {
    const { rollout, plan } = source;
    const { environments, observationSize, headSizes } = rollout;
    const { checkpoint, actor, prior } = start;
    if (environments % options.groupSize !== 0) {
      throw new RangeError(
        `Expected \`groupSize\` to divide the ${environments} environments, got ${options.groupSize}`,
      );
    }
    this.options = options;
    this.#source = source;
    this.#size = rolloutSize(rollout);
    const shape = { observationSize, headSizes, hidden: plan.hidden };
    this.network = new ActorCritic(kernels, shape, options.minibatchSize);
    this.network.initialize(new RandomStream(options.seed, 'weights'));
    if (prior) this.network.lean(prior.bins, prior.strength);
    if (actor) this.network.adam.parameters.set(actor.parameters);
    if (checkpoint) this.network.restore(checkpoint);
    const moments = checkpoint?.observations ?? actor?.moments;
    this.observations = moments ? RunningNormalizer.from(moments) : new RunningNormalizer(observationSize);
    const returns = checkpoint?.returns ?? actor?.returns;
    this.returns = returns ? RunningNormalizer.from(returns) : new RunningNormalizer(1);
    this.#steps = checkpoint?.steps ?? 0;
    this.#log = new EpisodeLog(environments, headSizes.length, checkpoint?.episodes);
    this.#minibatch = new Minibatch(kernels, options.minibatchSize, observationSize, headSizes.length);
    this.#normalized = kernels.allocate(this.#size * observationSize);
    this.#nextNormalized = kernels.allocate(this.#size * observationSize);
    this.#rewards = new Float64Array(this.#size);
    this.#values = new Float64Array(this.#size);
    this.#nextValues = new Float64Array(this.#size);
    this.#advantages = new Float64Array(this.#size);
    this.#targets = new Float64Array(this.#size);
    this.#discountedReturns = Float64Array.from(
      checkpoint?.discountedReturns ?? new Float64Array(environments),
    );
    this.#episodeReturns = Float64Array.from(checkpoint?.episodeReturns ?? new Float64Array(environments));
  }

  /** Actions learned from so far. */
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
      returns: this.returns.moments,
      parameters: adam.parameters.slice(0, actorParameterCount),
    };
  }

  /** A copy of all that the next updates depend on. */
  checkpoint(): PpoCheckpoint {
    return {
      steps: this.#steps,
      ...this.network.snapshot(),
      observations: this.observations.moments,
      returns: this.returns.moments,
      discountedReturns: [...this.#discountedReturns],
      episodeReturns: [...this.#episodeReturns],
      episodes: this.#log.episodes(),
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
    this.#steps += this.#size;
    return {
      steps: this.#steps,
      episodes: finishedReturns.length,
      meanReturn: finishedReturns.length > 0 ? mean(finishedReturns) : null,
      ...learned,
      explainedVariance: explainedVariance(this.#values, this.#targets),
      ...schedule,
    };
  }

  /** Has a rollout played. Returns the returns of the episodes that ended. */
  #collect(): number[] {
    const { rollout, policy } = this.#source;
    const { observations, network } = this;
    const { adam, actorParameterCount, keepBonus } = network;
    const parameters = adam.parameters.subarray(0, actorParameterCount);
    publishPolicy(policy, { parameters, observations, keepBonus });
    this.#source.play();
    this.#log.append(rollout);
    for (let at = 0; at < this.#size; at++) {
      normalizeRow(rollout.observations, at, policy, this.#normalized, at);
      observations.observe(rollout.observations, at);
    }
    return this.#scaleRewards();
  }

  /** Divides the rewards by the deviation of the discounted returns so far. */
  #scaleRewards(): number[] {
    const { environments, rewards, ends } = this.#source.rollout;
    const finishedReturns: number[] = [];
    for (let at = 0; at < this.#size; at++) {
      const e = at % environments;
      this.#episodeReturns[e]! += rewards[at]!;
      this.#discountedReturns[e] = this.options.gamma * this.#discountedReturns[e]! + rewards[at]!;
      this.returns.observe(this.#discountedReturns, e);
      if (ends[at] === RUNNING) continue;
      finishedReturns.push(this.#episodeReturns[e]!);
      this.#episodeReturns[e] = 0;
      this.#discountedReturns[e] = 0;
    }
    const deviation = this.returns.deviation(0);
    for (let at = 0; at < this.#size; at++) this.#rewards[at] = rewards[at]! / deviation;
    return finishedReturns;
  }

  #computeAdvantages(): void {
    const { rollout, policy } = this.#source;
    const { gamma, gaeLambda, groupSize } = this.options;
    const { environments, steps, ends, seeds, stepIndices } = rollout;
    this.#foresee(this.#normalized, this.#size, (at, value) => {
      this.#values[at] = value;
    });
    // Where the rollout does not go on though the episode might have: at its end, and at time limits.
    const boundaries: number[] = [];
    for (let at = 0; at < this.#size; at++) {
      const isLast = at >= this.#size - environments;
      if (ends[at] !== TRUNCATED && !(isLast && ends[at] === RUNNING)) continue;
      normalizeRow(rollout.nextObservations, at, policy, this.#nextNormalized, boundaries.length);
      boundaries.push(at);
    }
    this.#foresee(this.#nextNormalized, boundaries.length, (row, value) => {
      this.#nextValues[boundaries[row]!] = value;
    });
    const values = {
      ...{ environments, steps, ends },
      rewards: this.#rewards,
      values: this.#values,
      nextValues: this.#nextValues,
    };
    const advantages = this.#advantages;
    generalizedAdvantages(values, gamma, gaeLambda, advantages);
    for (let at = 0; at < this.#size; at++) this.#targets[at] = advantages[at]! + this.#values[at]!;
    subtractTraceBaseline({ environments, steps, seeds, stepIndices }, groupSize, advantages);
    standardize(advantages);
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
    const { gradients } = this.network.adam;
    const isActorFixed = this.#steps < this.options.criticOnlySteps;
    const { rollout } = this.#source;
    const judgement = {
      observations: this.#normalized,
      advantages: this.#advantages,
      targets: this.#targets,
    };
    const random = new RandomStream(this.options.seed, `minibatches after ${this.#steps} steps`);
    const order = Int32Array.from({ length: this.#size }, (_, at) => at);
    const sums = { policyLoss: 0, valueLoss: 0, entropy: 0, approxKl: 0, clipFraction: 0 };
    let firstRatioError = 0;
    let minibatches = 0;
    passes: for (let epoch = 0; epoch < epochs; epoch++) {
      shuffle(order, random);
      for (let start = 0; start < this.#size; start += minibatchSize) {
        this.#minibatch.gather(rollout, judgement, order.subarray(start, start + minibatchSize));
        const loss = ppoLossGradient(this.network, this.#minibatch, { clipCoef, entropyCoef, valueCoef });
        if (minibatches === 0) firstRatioError = loss.ratioError;
        sums.policyLoss += loss.policyLoss;
        sums.valueLoss += loss.valueLoss;
        sums.entropy += loss.entropy;
        sums.approxKl += loss.approxKl;
        sums.clipFraction += loss.clipFraction;
        minibatches++;
        if (loss.approxKl > targetKl) {
          gradients.fill(0);
          break passes;
        }
        if (isActorFixed) gradients.fill(0, 0, this.network.actorParameterCount);
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
