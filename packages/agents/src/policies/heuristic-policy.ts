import {
  type QuantizationTier,
  SERVE_TASKS,
  type ServeAction,
  type ServeObservation,
  type TaskId,
} from '@servegym/environments';
import { findProfile } from '@servegym/simulator';
import type { Policy, PolicyEpisode, PolicyStep } from '../policy.ts';

/** The configuration that the rules start from: no window has been seen yet when it is chosen. */
export const HEURISTIC_START: ServeAction = {
  batch_cap: 32,
  kv_budget_fraction: 0.7,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
};

/** The batch cap never leaves this range: the last batching rule stops at 16, the action at 512. */
const BATCH_CAP_RANGE = [16, 512] as const;
const KV_BUDGET_RANGE = [0.1, 1] as const;

/**
 * Hand-written rules after three papers, a group of rules each: batching after Orca, memory after vLLM, adaptation to
 * the workload after Decima. Within a group the first rule that applies wins; where none does, the knob stays.
 */
export class HeuristicPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'heuristic';
  #adversarial = false;
  #gpuMemoryGb = Number.POSITIVE_INFINITY;

  reset({ taskId }: PolicyEpisode): void {
    this.#adversarial = taskId === 'adversarial_multitenant';
    this.#gpuMemoryGb = gpuMemoryGb(taskId as TaskId);
  }

  act({ observation, previousAction, stepIndex }: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    if (stepIndex === 0) return HEURISTIC_START;
    return {
      batch_cap: orcaBatchCap(observation, previousAction.batch_cap),
      kv_budget_fraction: vllmKvBudget(observation, previousAction.kv_budget_fraction, this.#gpuMemoryGb),
      speculation_depth: decimaSpeculation(observation, previousAction.speculation_depth),
      quantization_tier: decimaQuantization(observation, previousAction.quantization_tier),
      prefill_decode_split: decimaSplit(observation, previousAction.batch_cap),
      priority_routing: this.#adversarial && decimaPriority(observation),
    };
  }
}

/**
 * Iteration-level batching: grow the batch when requests queue, shrink it when latency suffers all the same, shrink it
 * when idle. The queue comes first: requests that miss their objective because they queue are not helped by a smaller
 * batch, and the other order never recovers from a burst.
 * Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022.
 */
function orcaBatchCap(seen: ServeObservation, cap: number): number {
  if (seen.queue_depth > 0.7 * cap) return clamp(cap + 16, BATCH_CAP_RANGE);
  if (seen.slo_compliance_rate < 0.85) return clamp(cap - 32, BATCH_CAP_RANGE);
  if (seen.queue_depth < 0.2 * cap && cap > 16) return clamp(cap - 16, BATCH_CAP_RANGE);
  return cap;
}

/**
 * KV memory: a safe pool after preemptions, otherwise keep the GPU's memory between half and 85 % full. Occupancy is
 * that of the GPU: a pool that shrank because it is full, or grew because it is empty, would run away.
 * Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023.
 */
function vllmKvBudget(seen: ServeObservation, budget: number, gpuMemory: number): number {
  if (seen.eviction_events > 0) return 0.6;
  const occupancy = seen.gpu_memory_used_gb / gpuMemory;
  if (occupancy > 0.85) return clamp(toHundredths(budget - 0.1), KV_BUDGET_RANGE);
  if (occupancy < 0.5) return clamp(toHundredths(budget + 0.1), KV_BUDGET_RANGE);
  return budget;
}

/*
 * Adaptation to the workload: one knob for each thing that changes.
 * Mao et al., "Learning Scheduling Algorithms for Data Processing Clusters" (Decima), SIGCOMM 2019.
 */

function decimaQuantization(seen: ServeObservation, tier: QuantizationTier): QuantizationTier {
  if (seen.request_arrival_rate > 25) return 'INT8';
  if (seen.request_arrival_rate < 8) return 'FP16';
  return tier;
}

function decimaSpeculation(seen: ServeObservation, depth: number): number {
  // A window without arrivals says nothing about the prompts.
  if (seen.request_arrival_rate === 0) return depth;
  if (seen.mean_prompt_length > 800) return 0;
  if (seen.mean_prompt_length < 200) return 4;
  return depth;
}

function decimaSplit(seen: ServeObservation, cap: number): boolean {
  return seen.queue_depth > 0.5 * cap;
}

function decimaPriority(seen: ServeObservation): boolean {
  return seen.mean_prompt_length > 2000;
}

/** Memory of a GPU of the task's server, GB. */
function gpuMemoryGb(taskId: TaskId): number {
  return (findProfile(SERVE_TASKS[taskId].profile).gpu.memoryGiB * 2 ** 30) / 1e9;
}

function clamp(value: number, [low, high]: readonly [number, number]): number {
  return Math.min(high, Math.max(low, value));
}

/** Keeps ten steps of 0.1 from drifting. */
function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
