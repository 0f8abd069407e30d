import type { SchedulingPolicy } from '../engine/waiting-queue.ts';
import type { WeightPrecision } from '../profiles/engine-profile.ts';

/** The settings of a cluster that can change while it serves. */
export interface ServingConfig {
  /** Most sequences that run at once on each GPU (vLLM max_num_seqs). */
  readonly maxNumSeqs: number;
  /** Share of the memory left by weights, draft and activations that each GPU's KV pool takes, (0, 1]. */
  readonly kvBudgetFraction: number;
  /** Draft tokens a decode step; 0 is off. */
  readonly speculationDepth: number;
  /** Precision of the weights. A change reloads both GPUs: `weightChangeSeconds` without service, all KV lost. */
  readonly weights: WeightPrecision;
  /** GPU 0 prefills and GPU 1 decodes, instead of both doing both. A change first drains what runs. */
  readonly split: boolean;
  readonly schedulingPolicy: SchedulingPolicy;
}

/** Something that happened to a GPU. */
export interface ClusterEvent {
  /** `oom`: the pool and a co-tenant outgrew the GPU; its engine restarts with a pool that fits. */
  readonly kind: 'reload' | 'oom' | 'drain_started' | 'drain_finished' | 'drain_cancelled';
  /** Tick. */
  readonly at: number;
  readonly gpu: number;
}
