import { type ActorCriticShape, actorLayerSizes } from './actor-critic.ts';
import type { FloatArray } from './kernels.ts';
import { parameterCount } from './multilayer-perceptron.ts';
import type { RunningNormalizer } from './running-normalizer.ts';

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
export interface Rollout extends RolloutShape {
  /** As the environments showed them. */
  readonly observations: Float32Array;
  /** Bins in force before the actions: the last actions, or the initial ones after a reset. */
  readonly binsInForce: Int32Array;
  readonly actions: Int32Array;
  /** Of the actions, under the policy that played them. */
  readonly logProbabilities: Float64Array;
  readonly rewards: Float64Array;
  /** `RUNNING`, `TERMINATED` or `TRUNCATED`, for each action. */
  readonly ends: Uint8Array;
  /** Trace that the action was played on, and windows played before it. */
  readonly seeds: Float64Array;
  readonly stepIndices: Int32Array;
  /** Observations after the last step of the rollout and after the last action of an episode. */
  readonly nextObservations: Float32Array;
}

/** Actions in a rollout of this shape. */
export function rolloutSize({ environments, steps }: RolloutShape): number {
  return environments * steps;
}

export function allocateRollout(shape: RolloutShape): Rollout {
  const size = rolloutSize(shape);
  const shared = (bytes: number) => new SharedArrayBuffer(bytes);
  return {
    ...shape,
    observations: new Float32Array(shared(4 * size * shape.observationSize)),
    binsInForce: new Int32Array(shared(4 * size * shape.headSizes.length)),
    actions: new Int32Array(shared(4 * size * shape.headSizes.length)),
    logProbabilities: new Float64Array(shared(8 * size)),
    rewards: new Float64Array(shared(8 * size)),
    ends: new Uint8Array(shared(size)),
    seeds: new Float64Array(shared(8 * size)),
    stepIndices: new Int32Array(shared(4 * size)),
    nextObservations: new Float32Array(shared(4 * size * shape.observationSize)),
  };
}

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
