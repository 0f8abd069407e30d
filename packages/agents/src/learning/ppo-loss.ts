import type { ActorCritic } from './actor-critic.ts';
import type { FloatArray } from './kernels.ts';

/** What the loss is taken over: rows of what was seen, done and earned. */
export interface PpoSamples {
  readonly rows: number;
  readonly observations: FloatArray;
  /** Bins in force before the actions. */
  readonly binsInForce: Int32Array;
  readonly actions: Int32Array;
  /** Of the actions, under the policy that played them. */
  readonly logProbabilities: Float64Array;
  readonly advantages: Float64Array;
  /** What the critic should say. */
  readonly targets: Float64Array;
}

export interface PpoLossCoefficients {
  readonly clipCoef: number;
  readonly entropyCoef: number;
  readonly valueCoef: number;
}

/** Means over the samples. */
export interface PpoLoss {
  readonly policyLoss: number;
  readonly valueLoss: number;
  readonly entropy: number;
  readonly approxKl: number;
  readonly clipFraction: number;
  /** Largest distance of a probability ratio from 1. */
  readonly ratioError: number;
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
): PpoLoss {
  const { actor, critic, heads } = network;
  const { rows, observations, actions, advantages, targets } = samples;
  let policyLoss = 0;
  let entropy = 0;
  let approxKl = 0;
  let clipped = 0;
  let ratioError = 0;

  const logProbabilities = network.logProbabilities(observations, samples.binsInForce, rows);
  for (let row = 0; row < rows; row++) {
    const logRatio = heads.logProbability(logProbabilities, row, actions) - samples.logProbabilities[row]!;
    const ratio = Math.exp(logRatio);
    const clippedRatio = Math.max(1 - clipCoef, Math.min(1 + clipCoef, ratio));
    const advantage = advantages[row]!;
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
    const error = values[row]! - targets[row]!;
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
    ratioError,
  };
}
