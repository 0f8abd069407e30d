import type { RewardWeights } from './gym-tasks.ts';

/** Cost of 1,000 tokens that is fully charged, US cents: what hosts ask for the tokens of a model of 8 billion weights. */
export const REFERENCE_COST_PER_1K = 0.005;
/** Beyond twice the objective or the reference it makes no difference how far. */
export const MOST_EXCESS = 2;
/** An engine that runs out of memory fails its whole batch: its violations weigh this much more. */
export const OOM_VIOLATION_WEIGHT = 5;

/** Terms of the reward of a step, before the weights. */
export interface RewardTerms {
  /** T: tokens a second over the best that a fixed configuration reaches in the task. */
  throughput: number;
  /** L: median time to first token over the objective, at most 2. */
  latency: number;
  /** V: violated share of the judged requests, 0 to 1; times 5 out of memory. */
  violations: number;
  /** C: cost of 1,000 tokens over the reference, at most 2. */
  cost: number;
}

/** `alpha T - beta L - gamma V - delta C`, held within [-1, 1]. */
export function gymReward(
  { throughput, latency, violations, cost }: RewardTerms,
  weights: RewardWeights,
): number {
  const sum =
    weights.alpha * throughput - weights.beta * latency - weights.gamma * violations - weights.delta * cost;
  return Math.max(-1, Math.min(1, sum));
}
