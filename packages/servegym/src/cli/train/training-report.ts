import type { PpoUpdate, RegimeGeneration } from '@servegym/agents';
import type { MetricsLine } from './learning-curve.ts';

/** How far a training run is. */
export interface TrainingProgress {
  readonly plannedSteps: number;
  /** Where this part of the run began. */
  readonly firstStep: number;
  /** Since then. */
  readonly wallSeconds: number;
}

/** One line of progress: share done, speed, how the policy does and how it changes, time left. */
export function progressLine(
  update: PpoUpdate,
  { plannedSteps, firstStep, wallSeconds }: TrainingProgress,
): string {
  const { steps, meanReturn, approxKl, explainedVariance, entropy } = update;
  const speed = (steps - firstStep) / wallSeconds;
  const left = Math.max(0, plannedSteps - steps) / speed;
  return [
    `${Math.min(100, Math.floor((100 * steps) / plannedSteps))} %`.padStart(5),
    `${steps.toLocaleString('en-US')} steps`,
    `${Math.round(speed).toLocaleString('en-US')}/s`,
    `return ${meanReturn === null ? '-' : meanReturn.toFixed(1)}`,
    `KL ${approxKl.toFixed(4)}`,
    `EV ${explainedVariance.toFixed(2)}`,
    `entropy ${entropy.toFixed(2)}`,
    `${Math.ceil(left)} s left`,
  ].join('  ');
}

/** A line of `metrics.jsonl` with the time that it took. */
export function timedLine(
  { steps, ...figures }: MetricsLine,
  { firstStep, wallSeconds }: Pick<TrainingProgress, 'firstStep' | 'wallSeconds'>,
): MetricsLine {
  return { steps, wall_s: wallSeconds, steps_per_s: (steps - firstStep) / wallSeconds, ...figures };
}

/** What of a line of `metrics.jsonl` does not depend on the machine. */
export function learnedFigures(update: PpoUpdate): MetricsLine {
  return {
    steps: update.steps,
    episodes: update.episodes,
    mean_return: update.meanReturn,
    policy_loss: update.policyLoss,
    value_loss: update.valueLoss,
    entropy: update.entropy,
    approx_kl: update.approxKl,
    clip_fraction: update.clipFraction,
    explained_variance: update.explainedVariance,
    learning_rate: update.learningRate,
    entropy_coef: update.entropyCoef,
    keep_bonus: update.keepBonus,
    minibatches: update.minibatches,
  };
}

/** The same for a search of regimes. */
export function generationFigures({ steps, meanReturn, eliteReturn }: RegimeGeneration): MetricsLine {
  return { steps, mean_return: meanReturn, elite_return: eliteReturn };
}
