import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
} from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { kvMemoryGiB } from '@servegym/simulator';
import type { Policy, PolicyStep } from '../core/policy.ts';
import { EpisodePolicy } from './catalogue.ts';
import tunedRules from './tuned-rules.json' with { type: 'json' };

/** The configuration that the rules start from: no window has been seen yet when it is chosen. */
export const HEURISTIC_START: ServeAction = {
  batch_cap: 32,
  kv_budget_fraction: 0.7,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
};

const BATCH_CAP_RANGE = [16, 512] as const;
const KV_BUDGET_RANGE = [0.1, 1] as const;
/** Draft tokens for up to so many requests that run on both GPUs together. */
const DEPTHS = [
  { running: 16, depth: 6 },
  { running: 48, depth: 4 },
  { running: 128, depth: 3 },
  { running: 256, depth: 2 },
  { running: Number.POSITIVE_INFINITY, depth: 1 },
] as const;

/**
 * Hand-written rules after three papers, a group of rules each: batching after Orca, memory after vLLM, adaptation to
 * the workload after Decima. Within a group the first rule that applies wins; where none does, the knob stays.
 * A knob that the task masks stays at the default whatever the rules say.
 */
export function heuristicPolicy(): Policy<ServeAction, ServeObservation> {
  return new EpisodePolicy('heuristic', ({ taskId, resetOptions }) => {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    const gpuMemoryGb = (findProfile(task.profile).gpu.memoryGiB * GIB) / 1e9;
    return (step) => holdMaskedKnobs(task, ruled(step, task.objectives.interactive.tpotMs, gpuMemoryGb));
  });
}

function ruled(
  { observation, previousAction, stepIndex }: PolicyStep<ServeAction, ServeObservation>,
  tpotMs: number,
  gpuMemoryGb: number,
): ServeAction {
  if (stepIndex === 0) return HEURISTIC_START;
  // While weights are loaded the queue and the latencies tell nothing of the configuration.
  if (observation.throughput_tps === 0) return previousAction;
  return {
    batch_cap: orcaBatchCap(observation, previousAction.batch_cap, tpotMs),
    kv_budget_fraction: vllmKvBudget(observation, previousAction.kv_budget_fraction, gpuMemoryGb),
    speculation_depth: decimaSpeculation(observation),
    quantization_tier: decimaQuantization(observation, previousAction.quantization_tier),
    prefill_decode_split: decimaSplit(observation, previousAction.prefill_decode_split),
    priority_routing: observation.queue_depth > 0,
  };
}

/**
 * Iteration-level batching: grow the batch when requests queue, shrink it when none does and tokens come too slowly.
 * The queue comes first: requests that miss their objective because they queue are not helped by a smaller batch.
 * Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022.
 */
function orcaBatchCap(seen: ServeObservation, cap: number, tpotMs: number): number {
  if (seen.queue_depth > 0.25 * cap)
    return clamp(cap + Math.max(16, Math.round(seen.queue_depth / 2)), BATCH_CAP_RANGE);
  if (seen.slo_compliance_rate < 0.85 && seen.p50_itl_ms > tpotMs)
    return clamp(Math.round(0.75 * cap), BATCH_CAP_RANGE);
  return cap;
}

/**
 * KV memory: give way where the tenants of the GPU need room, grow a pool that preempts or is nearly full, give back
 * what lies idle.
 * Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023.
 */
function vllmKvBudget(seen: ServeObservation, budget: number, gpuMemoryGb: number): number {
  if (seen.gpu_memory_used_gb > 0.92 * gpuMemoryGb) return within(budget - 0.1);
  if (seen.eviction_events > 0 || seen.kv_cache_occupancy > 0.85) return within(budget + 0.15);
  if (seen.kv_cache_occupancy < 0.4) return within(0.8 * budget);
  return budget;
}

/*
 * Adaptation to the workload: one knob for each thing that changes.
 * Mao et al., "Learning Scheduling Algorithms for Data Processing Clusters" (Decima), SIGCOMM 2019.
 */

/**
 * Quantizes under a heavy load of prompts or behind a queue, and stays there: the way back costs a reload, and the next
 * burst another.
 */
function decimaQuantization(seen: ServeObservation, tier: ServeAction['quantization_tier']) {
  const promptTokensPerSecond = seen.request_arrival_rate * seen.mean_prompt_length;
  return promptTokensPerSecond > 6000 || seen.queue_depth > 40 ? 'INT8' : tier;
}

/** The fewer run, the more drafts a verify step has room for. */
function decimaSpeculation(seen: ServeObservation): number {
  return DEPTHS.find(({ running }) => seen.active_requests <= running)!.depth;
}

/** Keeps long prompts away from decodes. A window without arrivals says nothing about the prompts. */
function decimaSplit(seen: ServeObservation, split: boolean): boolean {
  if (seen.request_arrival_rate === 0) return split;
  if (seen.mean_prompt_length > 1500) return true;
  if (seen.mean_prompt_length < 1000) return false;
  return split;
}

function clamp(value: number, [low, high]: readonly [number, number]): number {
  return Math.min(high, Math.max(low, value));
}

/** Within the range of the KV budget, in whole hundredths: steps do not drift. */
function within(budget: number): number {
  return clamp(Math.round(budget * 100) / 100, KV_BUDGET_RANGE);
}

const GIB = 2 ** 30;

/** The six parameters of the rule. */
export interface RuleParameters {
  readonly batchCap: number;
  /** Draft tokens below `busyRate`, and from there on. */
  readonly calmDepth: number;
  readonly busyDepth: number;
  /** Arrivals a second. */
  readonly busyRate: number;
  /** Share of the KV pool that is to be in use. */
  readonly kvTarget: number;
  /** Memory of each GPU that is left free for tenants, GB. */
  readonly headroomGb: number;
}

/** A rule as it is played: what it keeps, and its parameters. */
export interface ServeRule {
  /** Precision, division and order stay as they are here; the other knobs begin so. */
  readonly kept: ServeAction;
  readonly parameters: RuleParameters;
}

/** File of the tuned parameters; `benchmarks/run.ts tuned-rules` writes it. */
export const TUNED_RULES_URL = new URL('./tuned-rules.json', import.meta.url);

/** For a task that nothing was tuned for. */
export const UNTUNED_RULE: RuleParameters = {
  batchCap: 128,
  calmDepth: 4,
  busyDepth: 2,
  busyRate: 8,
  kvTarget: 0.8,
  headroomGb: 2,
};

const TUNED: Readonly<Record<string, RuleParameters>> = tunedRules;

/**
 * The rule that learned policies have to beat: drafts by the arrival rate, a KV pool by what is used of it and by what
 * tenants leave, one batch cap, everything else as in the best constant. It changes no knob that costs a reload or a drain.
 * @param rule by default the one tuned on the training split of the task
 */
export function rulePolicy(rule?: ServeRule): Policy<ServeAction, ServeObservation> {
  return new EpisodePolicy('rule', ({ taskId, resetOptions }) => {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    return playRule(task, rule ?? tunedRule(task));
  });
}

function tunedRule(task: ServeTask): ServeRule {
  const [kept] = llmserve.anchors.configurations(task);
  const parameters = Object.hasOwn(TUNED, task.id) ? TUNED[task.id] : UNTUNED_RULE;
  return { kept: kept!, parameters: parameters! };
}

/** The rule on the server of a task. */
export function playRule(
  task: ServeTask,
  { kept, parameters }: ServeRule,
): (
  step: Pick<PolicyStep<ServeAction, ServeObservation>, 'observation' | 'previousAction' | 'stepIndex'>,
) => ServeAction {
  const { batchCap, calmDepth, busyDepth, busyRate, kvTarget, headroomGb } = parameters;
  const profile = findProfile(task.profile);
  const gpuGb = (profile.gpu.memoryGiB * GIB) / 1e9;
  const poolGb = (kvMemoryGiB(profile, kept.quantization_tier, true) * GIB) / 1e9;
  return ({ observation, previousAction, stepIndex }) => {
    if (stepIndex === 0) return holdMaskedKnobs(task, kept);
    const budget = previousAction.kv_budget_fraction;
    const wanted = (observation.kv_cache_occupancy * budget) / kvTarget;
    const most = budget + (gpuGb - headroomGb - observation.gpu_memory_used_gb) / poolGb;
    return holdMaskedKnobs(task, {
      ...kept,
      batch_cap: batchCap,
      speculation_depth: observation.request_arrival_rate >= busyRate ? busyDepth : calmDepth,
      // In whole hundredths: steps do not drift.
      kv_budget_fraction: Math.min(1, Math.max(0.1, Math.round(100 * Math.min(wanted, most)) / 100)),
    });
  };
}
