import type { GymEpisode } from './gym-episode.ts';
import type { RewardTerms } from './gym-reward.ts';
import { EPISODE_STEPS, type GymAction, type Phase } from './schema.ts';
import type { StepMetrics } from './step-metrics.ts';
import { promptBucket } from './table/table-columns.ts';

/** What comes beside an observation: `metadata`, which HTTP answers also call `info`. */
export interface StepInfo {
  readonly timestep: number;
  readonly episode_length: number;
  readonly metrics: StepMetrics;
  readonly workload: {
    readonly arrival_rate: number;
    readonly mean_prompt_len: number;
    readonly prompt_len_bucket: number;
    readonly queue_depth: number;
    readonly priority_distribution: readonly number[];
    readonly is_burst: boolean;
    readonly phase: Phase;
  };
  /** The configuration in force: knobs that the task masks have their defaults. */
  readonly applied_action: GymAction;
  readonly reward_components: RewardTerms;
  readonly out_of_memory: boolean;
  readonly rejected_requests: number;
}

export function stepInfo(episode: GymEpisode): StepInfo {
  const { metrics, terms, workload, timestep } = episode;
  const observation = episode.observation();
  return {
    timestep,
    episode_length: EPISODE_STEPS,
    metrics: { ...metrics },
    workload: {
      arrival_rate: observation.arrival_rate,
      mean_prompt_len: observation.mean_prompt_len,
      prompt_len_bucket: promptBucket(observation.mean_prompt_len),
      queue_depth: observation.queue_depth,
      priority_distribution: observation.priority_distribution,
      is_burst: workload.isBurst(Math.max(0, timestep - 1)),
      phase: episode.phase,
    },
    applied_action: {
      kv_budget: episode.kvBudget,
      spec_length: episode.specLength,
      batch_size: episode.batchSize,
      prefill_disagg: episode.prefillDisagg,
      quant_tier: episode.quantTier,
    },
    reward_components: { ...terms },
    out_of_memory: episode.outOfMemory,
    rejected_requests: episode.rejected,
  };
}
