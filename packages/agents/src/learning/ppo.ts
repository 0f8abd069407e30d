import { RandomStream } from '@servegym/simulator';
import { mean, variance } from '@servegym/simulator/statistics';
import { ActorCritic, shuffle } from './actor-critic.ts';
import { type FloatArray, type Kernels, simdKernels } from './kernels.ts';
import { RUNNING, TERMINATED, TRUNCATED, type TraceSchedule } from './learning-environment.ts';
import { publishPolicy, type Rollout, rolloutSize } from './rollout-player.ts';
import { type RolloutSource, startRollouts } from './rollout-threads.ts';
import { normalizeRow, RunningNormalizer } from './running-normalizer.ts';
import type { ActorWeights } from './trained-actor.ts';

// Proximal policy optimization, in the order in which it runs:
//
//   trainPpo                        until all steps are learned from
//     Ppo.update
//       #collect                    one rollout of the policy as it is
//       #computeAdvantages          critic, GAE, trace baseline, standardization
//       #learn                      epochs of shuffled minibatches: loss, gradients, Adam
//
// Shapes. Everything is flat and row-major; [N x O] holds row n at n * O.
//   E environments    T steps of each in a rollout    N = T * E entries: (t, e) is entry t * E + e
//   O numbers in an observation    H heads of an action, one bin each    L logits, the bins of all heads
//   B rows of a minibatch

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
}

/** Options that suit most tasks; recipes such as `SERVE_PPO` change what theirs need. */
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
} as const satisfies Omit<PpoOptions, 'seed' | 'totalSteps'>;

/** Options, sizes of rollouts and layers for a family of environments. */
export interface PpoRecipe extends Omit<PpoOptions, 'seed' | 'totalSteps'> {
  /** Environments that are played side by side. */
  readonly environments: number;
  /** Actions that each environment plays between two updates. */
  readonly rolloutSteps: number;
  /** Units of the hidden layers of actor and critic. */
  readonly hidden: readonly number[];
}

/** A training. */
export interface PpoTraining {
  /** `SERVE_PPO`, say. */
  readonly recipe: PpoRecipe;
  /** Module that exports `createEnvironment(settings)`, see `EnvironmentModule`; imported by every thread. */
  readonly module: URL;
  /** Passed to `createEnvironment`; must survive structured cloning. */
  readonly settings: unknown;
  readonly traces: TraceSchedule['traces'];
  /** Actions to learn from, over all environments; rounded up to whole rollouts. */
  readonly steps: number;
  /** Seed of weights, exploration and traces. */
  readonly seed: number;
  /** Threads that play; the result does not depend on it. */
  readonly threads: number;
  /** Ends the training after the update at hand; what has been learned is kept. */
  readonly signal?: AbortSignal;
  readonly onUpdate?: (update: PpoUpdate) => void;
}

/** Result of a training. */
export interface PpoTrained {
  readonly weights: ActorWeights;
  /** Actions learned from. */
  readonly steps: number;
}

/** Figures of one update. */
export type PpoUpdate = Readonly<ReturnType<Ppo['update']>>;

/** Trains a network with PPO on several threads. */
export async function trainPpo(training: PpoTraining, kernels: Kernels = simdKernels()): Promise<PpoTrained> {
  const { recipe, module, settings, traces, steps, seed, threads, signal, onUpdate } = training;
  const { environments, rolloutSteps, hidden, ...options } = recipe;
  const source = await startRollouts({
    ...{ environments, steps: rolloutSteps, threads, module, settings },
    plan: { seed, hidden, schedule: { seed, groupSize: recipe.groupSize, traces } },
  });
  try {
    const ppo = new Ppo(source, kernels, { ...options, seed, totalSteps: steps });
    while (!ppo.finished && !signal?.aborted) {
      const update = ppo.update();
      onUpdate?.(update);
      // Rollouts block the thread: let progress be shown and signals be heard between them.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { weights: ppo.actorWeights(), steps: ppo.steps };
  } finally {
    await source.close();
  }
}

/** Proximal policy optimization. Deterministic: the same options and environments give the same weights, bit for bit. */
export class Ppo {
  readonly options: PpoOptions;
  readonly network: ActorCritic;
  /** Of the observations that the network sees. */
  readonly observations: RunningNormalizer;
  /** Of the discounted returns; rewards are divided by their deviation. */
  readonly returns: RunningNormalizer;
  #steps = 0;
  readonly #source: RolloutSource;
  readonly #size: number;
  readonly #minibatch: ReturnType<typeof allocateSamples>;
  /** Normalized observations of the rollout, [N x O], and those that it does not go on from, [at most N x O]. */
  readonly #normalized: FloatArray;
  readonly #nextNormalized: FloatArray;
  /** [N] each. */
  readonly #actions: ReturnType<typeof allocateActions>;
  /** [E]: returns of the running episodes. */
  readonly #discountedReturns: Float64Array;
  readonly #episodeReturns: Float64Array;

  constructor(source: RolloutSource, kernels: Kernels, options: PpoOptions) {
    const { rollout, plan } = source;
    const { environments, observationSize, headSizes } = rollout;
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
    this.observations = new RunningNormalizer(observationSize);
    this.returns = new RunningNormalizer(1);
    this.#minibatch = allocateSamples(kernels, options.minibatchSize, observationSize, headSizes.length);
    this.#normalized = kernels.allocate(this.#size * observationSize);
    this.#nextNormalized = kernels.allocate(this.#size * observationSize);
    this.#actions = allocateActions(this.#size);
    this.#discountedReturns = new Float64Array(environments);
    this.#episodeReturns = new Float64Array(environments);
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
      parameters: adam.parameters.slice(0, actorParameterCount),
    };
  }

  /** Plays one rollout and learns from it. */
  update() {
    const schedule = this.#scheduleAt(this.#steps);
    this.network.keepBonus = schedule.keepBonus;
    const finishedReturns = this.#collect();
    this.#computeAdvantages();
    const learned = this.#learn(schedule);
    this.#steps += this.#size;
    return {
      /** Actions learned from so far. */
      steps: this.#steps,
      /** Episodes that ended during the rollout. */
      episodes: finishedReturns.length,
      /** Mean of their undiscounted returns; `null` when none ended. */
      meanReturn: finishedReturns.length > 0 ? mean(finishedReturns) : null,
      ...learned,
      /** Share of the returns' variance that the critic had foreseen; at most 1. */
      explainedVariance: explainedVariance(this.#actions.values, this.#actions.targets),
      ...schedule,
    };
  }

  /** What changes over the training, for an update after so many steps. */
  #scheduleAt(steps: number) {
    const progress = Math.min(1, steps / this.options.totalSteps);
    const along = ([start, end]: readonly [number, number]) => start + (end - start) * progress;
    return {
      learningRate: this.options.learningRate * (1 - progress),
      entropyCoef: along(this.options.entropyCoef),
      keepBonus: along(this.options.keepBonus),
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
      this.#episodeReturns[e] += rewards[at];
      this.#discountedReturns[e] = this.options.gamma * this.#discountedReturns[e] + rewards[at];
      this.returns.observe(this.#discountedReturns, e);
      if (ends[at] === RUNNING) continue;
      finishedReturns.push(this.#episodeReturns[e]);
      this.#episodeReturns[e] = 0;
      this.#discountedReturns[e] = 0;
    }
    const deviation = this.returns.deviation(0);
    for (let at = 0; at < this.#size; at++) this.#actions.rewards[at] = rewards[at] / deviation;
    return finishedReturns;
  }

  #computeAdvantages(): void {
    const { rollout, policy } = this.#source;
    const { gamma, gaeLambda, groupSize } = this.options;
    const { environments, steps, ends, seeds, stepIndices } = rollout;
    const { values, nextValues, advantages, targets } = this.#actions;
    this.#predictValues(this.#normalized, this.#size, (at, value) => {
      values[at] = value;
    });
    // Entries that are bootstrapped: the last of the rollout, and time limits.
    const boundaries: number[] = [];
    for (let at = 0; at < this.#size; at++) {
      const isLast = at >= this.#size - environments;
      if (ends[at] !== TRUNCATED && !(isLast && ends[at] === RUNNING)) continue;
      normalizeRow(rollout.nextObservations, at, policy, this.#nextNormalized, boundaries.length);
      boundaries.push(at);
    }
    this.#predictValues(this.#nextNormalized, boundaries.length, (row, value) => {
      nextValues[boundaries[row]] = value;
    });
    generalizedAdvantages({ environments, steps, ends, ...this.#actions }, gamma, gaeLambda, advantages);
    for (let at = 0; at < this.#size; at++) targets[at] = advantages[at] + values[at];
    subtractTraceBaseline({ environments, steps, seeds, stepIndices }, groupSize, advantages);
    standardize(advantages);
  }

  /** Asks the critic for the value of each row. */
  #predictValues(observations: FloatArray, rows: number, keep: (row: number, value: number) => void): void {
    const size = this.observations.size;
    const { minibatchSize } = this.options;
    for (let start = 0; start < rows; start += minibatchSize) {
      const count = Math.min(minibatchSize, rows - start);
      const values = this.network.critic.forward(
        observations.subarray(start * size, (start + count) * size),
        count,
      );
      for (let row = 0; row < count; row++) keep(start + row, values[row]);
    }
  }

  /** Goes over the rollout in shuffled minibatches, until done or too far from the policy that played it. */
  #learn({ learningRate, entropyCoef }: { learningRate: number; entropyCoef: number }) {
    const { epochs, minibatchSize, clipCoef, valueCoef, maxGradNorm, targetKl } = this.options;
    const { gradients } = this.network.adam;
    const random = new RandomStream(this.options.seed, `minibatches after ${this.#steps} steps`);
    const order = Int32Array.from({ length: this.#size }, (_, at) => at);
    // Entropy and divergence in nats, entropy summed over the heads; `clipFraction`: share of the samples whose probability
    // ratio left the clip range.
    const sums = { policyLoss: 0, valueLoss: 0, entropy: 0, approxKl: 0, clipFraction: 0 };
    const figures = Object.keys(sums) as (keyof typeof sums)[];
    let firstRatioError = 0;
    let minibatches = 0;
    passes: for (let epoch = 0; epoch < epochs; epoch++) {
      shuffle(order, random);
      for (let start = 0; start < this.#size; start += minibatchSize) {
        this.#gather(order.subarray(start, start + minibatchSize));
        const loss = ppoLossGradient(this.network, this.#minibatch, { clipCoef, entropyCoef, valueCoef });
        if (minibatches === 0) firstRatioError = loss.ratioError;
        for (const figure of figures) sums[figure] += loss[figure];
        minibatches++;
        if (loss.approxKl > targetKl) {
          gradients.fill(0);
          break passes;
        }
        this.network.descend(learningRate, maxGradNorm);
      }
    }
    for (const figure of figures) sums[figure] /= minibatches;
    return {
      ...sums,
      minibatches,
      /** Largest distance from 1 of a probability ratio in the first minibatch: 0, or acting and learning disagree. */
      firstRatioError,
    };
  }

  /** Takes the given entries of the rollout into the minibatch. */
  #gather(entries: Int32Array): void {
    const { rollout } = this.#source;
    const samples = this.#minibatch;
    const { observationSize: size } = rollout;
    const heads = rollout.headSizes.length;
    samples.rows = entries.length;
    for (let row = 0; row < entries.length; row++) {
      const at = entries[row];
      samples.observations.set(this.#normalized.subarray(at * size, (at + 1) * size), row * size);
      samples.binsInForce.set(rollout.binsInForce.subarray(at * heads, (at + 1) * heads), row * heads);
      samples.actions.set(rollout.actions.subarray(at * heads, (at + 1) * heads), row * heads);
      samples.logProbabilities[row] = rollout.logProbabilities[at];
      samples.advantages[row] = this.#actions.advantages[at];
      samples.targets[row] = this.#actions.targets[at];
    }
  }
}

/** What the learner makes of the actions of a rollout. */
function allocateActions(count: number) {
  return {
    /** Over the deviation of the returns. */
    rewards: new Float64Array(count),
    /** The critic's values of the observations, and of those that actions led to. */
    values: new Float64Array(count),
    nextValues: new Float64Array(count),
    advantages: new Float64Array(count),
    /** Advantages plus values, for the critic. */
    targets: new Float64Array(count),
  };
}

/** A rollout as the advantages see it. */
export interface RolloutValues extends Pick<Rollout, 'environments' | 'steps' | 'rewards' | 'ends'> {
  /** Values of the observations that actions were chosen on, [N]. */
  readonly values: Float64Array;
  /** Values of the observations that actions led to, [N]; read where the rollout or, by its time limit, the episode ended. */
  readonly nextValues: Float64Array;
}

/**
 * Writes the advantage of each action: sum over k of (gamma lambda)^k delta(t + k) up to the end of the episode or of the
 * rollout, delta(t) = r(t) + gamma V(t + 1) - V(t). An episode that was cut off is bootstrapped like a running one.
 * Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", ICLR 2016; Pardo et
 * al., "Time Limits in Reinforcement Learning", ICML 2018.
 */
export function generalizedAdvantages(
  { environments, steps, rewards, ends, values, nextValues }: RolloutValues,
  gamma: number,
  lambda: number,
  advantages: Float64Array,
): void {
  for (let e = 0; e < environments; e++) {
    let advantage = 0;
    for (let t = steps - 1; t >= 0; t--) {
      const at = t * environments + e;
      const running = ends[at] === RUNNING;
      const next = running && t < steps - 1 ? values[at + environments] : nextValues[at];
      const worthNext = ends[at] === TERMINATED ? 0 : next;
      const delta = rewards[at] + gamma * worthNext - values[at];
      advantage = delta + (running ? gamma * lambda * advantage : 0);
      advantages[at] = advantage;
    }
  }
}

/**
 * Takes out of the advantages what the trace explains: neighbouring environments form groups of `groupSize` that play the
 * same traces, and from each advantage the mean over the group's others at the same window is subtracted. Whatever the
 * traffic does to everybody cancels, and what the actions did remains. The others' actions do not depend on one's own, so
 * the policy gradient stays unbiased. Mao et al., "Variance Reduction for Reinforcement Learning in Input-Driven
 * Environments", ICLR 2019.
 */
export function subtractTraceBaseline(
  {
    environments,
    steps,
    seeds,
    stepIndices,
  }: Pick<Rollout, 'environments' | 'steps' | 'seeds' | 'stepIndices'>,
  groupSize: number,
  advantages: Float64Array,
): void {
  const before = new Float64Array(groupSize);
  for (let t = 0; t < steps; t++) {
    for (let group = 0; group < environments; group += groupSize) {
      const first = t * environments + group;
      for (let i = 0; i < groupSize; i++) before[i] = advantages[first + i];
      for (let i = 0; i < groupSize; i++) {
        let sum = 0;
        let others = 0;
        for (let j = 0; j < groupSize; j++) {
          const same =
            seeds[first + j] === seeds[first + i] && stepIndices[first + j] === stepIndices[first + i];
          if (j === i || !same) continue;
          sum += before[j];
          others++;
        }
        if (others > 0) advantages[first + i] = before[i] - sum / others;
      }
    }
  }
}

/** Brings the values to mean 0 and variance 1. */
function standardize(values: Float64Array): void {
  const center = mean(values);
  const deviation = Math.sqrt(variance(values)) + 1e-8;
  for (let i = 0; i < values.length; i++) values[i] = (values[i] - center) / deviation;
}

/** Rows of a minibatch: entries of a rollout, with what the learner has made of them. */
export type PpoSamples = Readonly<ReturnType<typeof allocateSamples>>;

function allocateSamples(kernels: Kernels, maxRows: number, observationSize: number, headCount: number) {
  return {
    /** B, or fewer at the end of a pass. */
    rows: 0,
    /** Normalized, [B x O]. */
    observations: kernels.allocate(maxRows * observationSize),
    /** Bins in force before the actions, and the actions, [B x H]. */
    binsInForce: new Int32Array(maxRows * headCount),
    actions: new Int32Array(maxRows * headCount),
    /** Of the actions, under the policy that played them, [B]. */
    logProbabilities: new Float64Array(maxRows),
    /** [B]. */
    advantages: new Float64Array(maxRows),
    /** Values that the critic should give, [B]. */
    targets: new Float64Array(maxRows),
  };
}

export interface PpoLossCoefficients {
  readonly clipCoef: number;
  readonly entropyCoef: number;
  readonly valueCoef: number;
}

/**
 * Adds to the network's gradients those of `policyLoss - entropyCoef * entropy + valueCoef * valueLoss`:
 *
 * - `policyLoss`: mean of `-min(ratio * A, clip(ratio, 1 - clipCoef, 1 + clipCoef) * A)`,
 *   ratio = p(action) / p(action) when it was played;
 * - `valueLoss`: mean of `(value - target)^2 / 2`.
 */
export function ppoLossGradient(
  network: ActorCritic,
  samples: PpoSamples,
  { clipCoef, entropyCoef, valueCoef }: PpoLossCoefficients,
) {
  const { actor, critic, heads } = network;
  const { rows, observations, actions, advantages, targets } = samples;
  let policyLoss = 0;
  let entropy = 0;
  let approxKl = 0;
  let clipped = 0;
  let ratioError = 0;

  const logProbabilities = network.logProbabilities(observations, samples.binsInForce, rows);
  for (let row = 0; row < rows; row++) {
    const logRatio = heads.logProbability(logProbabilities, row, actions) - samples.logProbabilities[row];
    const ratio = Math.exp(logRatio);
    const clippedRatio = Math.max(1 - clipCoef, Math.min(1 + clipCoef, ratio));
    const advantage = advantages[row];
    const inside = ratio * advantage <= clippedRatio * advantage;
    policyLoss -= inside ? ratio * advantage : clippedRatio * advantage;
    approxKl += ratio - 1 - logRatio;
    if (ratio !== clippedRatio) clipped++;
    ratioError = Math.max(ratioError, Math.abs(ratio - 1));
    entropy += heads.gradient(
      logProbabilities,
      row,
      actions,
      inside ? (-ratio * advantage) / rows : 0,
      -entropyCoef / rows,
      actor.outputGradients,
    );
  }
  actor.backward(rows);

  let valueLoss = 0;
  const values = critic.forward(observations, rows);
  for (let row = 0; row < rows; row++) {
    const error = values[row] - targets[row];
    valueLoss += (error * error) / 2;
    critic.outputGradients[row] = (valueCoef * error) / rows;
  }
  critic.backward(rows);

  return {
    policyLoss: policyLoss / rows,
    valueLoss: valueLoss / rows,
    entropy: entropy / rows,
    approxKl: approxKl / rows,
    clipFraction: clipped / rows,
    /** Largest distance of a probability ratio from 1. */
    ratioError,
  };
}

/** 1 - Var(targets - values) / Var(targets). */
function explainedVariance(values: Float64Array, targets: Float64Array): number {
  const errors = targets.map((target, i) => target - values[i]);
  return 1 - variance(errors) / (variance(targets) + 1e-12);
}
