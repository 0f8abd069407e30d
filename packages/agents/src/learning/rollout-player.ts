import { RandomStream } from '@servegym/simulator';
import { type ActorCriticShape, actorLayerSizes } from './actor-critic.ts';
import type { FloatArray, Kernels } from './kernels.ts';
import { type LearningEnvironment, RUNNING, type TraceSchedule, traceSeed } from './learning-environment.ts';
import { parameterCount } from './multilayer-perceptron.ts';
import type { RunningNormalizer } from './running-normalizer.ts';
import { Actor } from './trained-actor.ts';

/** Sizes of a rollout. */
export interface RolloutShape {
  readonly environments: number;
  /** Actions that each environment plays. */
  readonly steps: number;
  /** Numbers in an observation. */
  readonly observationSize: number;
  /** Bins of each head of an action. */
  readonly headSizes: readonly number[];
}

/**
 * Observations, actions and rewards of several environments; entry (t, e) is at `t * environments + e`. On memory that threads
 * can share.
 */
export type Rollout = Readonly<ReturnType<typeof allocateRollout>>;

/** Actions in a rollout of this shape. */
export function rolloutSize({ environments, steps }: RolloutShape): number {
  return environments * steps;
}

export function allocateRollout(shape: RolloutShape) {
  const size = rolloutSize(shape);
  const shared = (bytes: number): ArrayBufferLike => new SharedArrayBuffer(bytes);
  return {
    ...shape,
    /** As the environments showed them. */
    observations: new Float32Array(shared(4 * size * shape.observationSize)),
    /** Bins in force before the actions: the last actions, or the initial ones after a reset. */
    binsInForce: new Int32Array(shared(4 * size * shape.headSizes.length)),
    actions: new Int32Array(shared(4 * size * shape.headSizes.length)),
    /** Of the actions, under the policy that played them. */
    logProbabilities: new Float64Array(shared(8 * size)),
    rewards: new Float64Array(shared(8 * size)),
    /** `RUNNING`, `TERMINATED` or `TRUNCATED`, for each action. */
    ends: new Uint8Array(shared(size)),
    /** Trace that the action was played on, and windows played before it. */
    seeds: new Float64Array(shared(8 * size)),
    stepIndices: new Int32Array(shared(4 * size)),
    /** Observations after the last step of the rollout and after the last action of an episode. */
    nextObservations: new Float32Array(shared(4 * size * shape.observationSize)),
  };
}

/** The policy that plays a rollout, on memory that threads can share: published before each rollout, read by all. */
export type PublishedPolicy = ReturnType<typeof allocatePolicy>;

export function allocatePolicy(shape: ActorCriticShape) {
  const doubles = (length: number) => new Float64Array(new SharedArrayBuffer(8 * length));
  return {
    /** Of the actor. */
    parameters: new Float32Array(new SharedArrayBuffer(4 * parameterCount(actorLayerSizes(shape)))),
    /** Mean and standard deviation that observations are normalized by. */
    mean: doubles(shape.observationSize),
    deviation: doubles(shape.observationSize),
    /** One number: added to the logit of the bin in force of each head. */
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

/** Plan of the rollouts of a training run, the same for all environments. */
export interface PlayPlan {
  /** Seed of the actions that are drawn. */
  readonly seed: number;
  readonly schedule: TraceSchedule;
  /** Units of the hidden layers of the actor. */
  readonly hidden: readonly number[];
}

/** Share of a player. */
export interface PlayerShare {
  readonly plan: PlayPlan;
  readonly rollout: Rollout;
  readonly policy: PublishedPolicy;
  /** The first of the player's environments: they are neighbours. */
  readonly first: number;
}

/**
 * Plays its share of each rollout: acts in its environments as the published policy does, by draws of their own, and
 * writes their columns. An episode that ends is followed by the next one at once.
 */
export class RolloutPlayer {
  readonly #share: PlayerShare;
  readonly #environments: readonly LearningEnvironment[];
  readonly #actor: Actor;
  readonly #draws: readonly RandomStream[];
  readonly #episodes: Int32Array;
  readonly #seeds: Float64Array;
  readonly #stepIndices: Int32Array;
  /** Observations for the next actions, row by row. */
  readonly #observations: Float32Array;
  readonly #bins: Int32Array;

  constructor(environments: readonly LearningEnvironment[], share: PlayerShare, kernels: Kernels) {
    const { plan, rollout, first } = share;
    const { seed, hidden } = plan;
    const count = environments.length;
    const heads = rollout.headSizes.length;
    this.#share = share;
    this.#environments = environments;
    this.#actor = new Actor({ ...rollout, hidden }, kernels, count);
    this.#draws = environments.map(
      (_, e) => new RandomStream(seed, `actions of environment ${first + e}`, 0),
    );
    this.#episodes = new Int32Array(count);
    this.#seeds = new Float64Array(count);
    this.#stepIndices = new Int32Array(count);
    this.#observations = new Float32Array(count * rollout.observationSize);
    this.#bins = new Int32Array(count * heads);
    for (let e = 0; e < count; e++) this.#startEpisode(e, 0);
  }

  /** Plays its columns of one rollout. Throws a `RangeError` when a reward is not finite. */
  play(): void {
    this.#actor.parameters.set(this.#share.policy.parameters);
    for (let t = 0; t < this.#share.rollout.steps; t++) this.#playStep(t);
  }

  #playStep(t: number): void {
    const { rollout, first, policy } = this.#share;
    const { steps, headSizes } = rollout;
    const heads = headSizes.length;
    const count = this.#environments.length;
    const start = t * rollout.environments + first;
    rollout.observations.set(this.#observations, start * rollout.observationSize);
    rollout.binsInForce.set(this.#bins, start * heads);
    rollout.seeds.set(this.#seeds, start);
    rollout.stepIndices.set(this.#stepIndices, start);

    const { heads: choices } = this.#actor;
    const by = { scale: policy, keepBonus: policy.keepBonus[0] };
    const logProbabilities = this.#actor.logits(this.#observations, this.#bins, count, by);
    choices.normalize(logProbabilities, count);
    for (let e = 0; e < count; e++) {
      choices.sample(logProbabilities, e, this.#bins, this.#draws[e]);
      rollout.logProbabilities[start + e] = choices.logProbability(logProbabilities, e, this.#bins);
    }
    rollout.actions.set(this.#bins, start * heads);

    for (let e = 0; e < count; e++) {
      const observation = this.#row(e);
      const action = this.#bins.subarray(e * heads, (e + 1) * heads);
      const { reward, end } = this.#environments[e].step(action, observation);
      if (!Number.isFinite(reward)) {
        throw new RangeError(`Expected finite rewards, got ${reward} on trace ${this.#seeds[e]}`);
      }
      rollout.rewards[start + e] = reward;
      rollout.ends[start + e] = end;
      this.#stepIndices[e]++;
      if (end !== RUNNING || t === steps - 1) {
        rollout.nextObservations.set(observation, (start + e) * rollout.observationSize);
      }
      if (end !== RUNNING) this.#startEpisode(e, this.#episodes[e] + 1);
    }
  }

  #startEpisode(e: number, episode: number): void {
    const { plan, first } = this.#share;
    const environment = this.#environments[e];
    this.#episodes[e] = episode;
    this.#seeds[e] = traceSeed(plan.schedule, first + e, episode);
    this.#stepIndices[e] = 0;
    const heads = environment.headSizes.length;
    this.#bins.set(environment.initialBins, e * heads);
    environment.reset(this.#seeds[e], this.#row(e));
  }

  #row(e: number): Float32Array {
    const size = this.#share.rollout.observationSize;
    return this.#observations.subarray(e * size, (e + 1) * size);
  }
}
