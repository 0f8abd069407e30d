import type { RewardWeights } from './serve-task.ts';

/** Figures that make a window's reward, each in [0, 1] unless said otherwise. */
interface WindowOutcome {
  /** Output tokens over output tokens plus those owed to the requests that wait; 0 when nothing is emitted. */
  readonly servedShare: number;
  /** Weighted share of the judged requests inside their objectives. */
  readonly sloAttainment: number;
  /** Share of the GPUs' memory that weights, draft and KV pool hold. */
  readonly memoryShare: number;
  /** Cost of 1,000 output tokens over the task's reference; at most 1, and 1 when nothing is emitted. */
  readonly costShare: number;
  /** 1 - the quality of the weights' tier. */
  readonly qualityLoss: number;
  /** Reward that a unit of quality is worth in this phase; any non-negative number. */
  readonly qualityValue: number;
}

/** The signed parts of a reward, which sum to it. */
export interface RewardComponents {
  readonly throughput: number;
  readonly slo: number;
  readonly memory: number;
  readonly cost: number;
  readonly quality: number;
}

export function rewardComponents(outcome: WindowOutcome, weights: RewardWeights): RewardComponents {
  return {
    throughput: weights.throughput * outcome.servedShare,
    slo: weights.slo * outcome.sloAttainment,
    memory: -weights.memory * outcome.memoryShare,
    cost: -weights.cost * outcome.costShare,
    quality: -outcome.qualityValue * outcome.qualityLoss,
  };
}

/** The sum of the parts, held within [-1, 1]. */
export function totalReward(components: RewardComponents): number {
  const { throughput, slo, memory, cost, quality } = components;
  return Math.max(-1, Math.min(1, throughput + slo + memory + cost + quality));
}
