import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
  serverOf,
} from '@servegym/environments';
import { kvMemoryGiB } from '@servegym/simulator';
import type { Policy } from '../core/policy.ts';
import { ANY_SERVER } from '../learning/learners.ts';
import { episodePolicy } from './catalogue.ts';
import type { ServeWindow } from './steady-state.ts';
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
  return episodePolicy('heuristic', ({ taskId, resetOptions }) => {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    const gpuMemoryGb = (serverOf(task).gpu.memoryGiB * GIB) / 1e9;
    return (step) => holdMaskedKnobs(task, ruled(step, task.objectives.interactive.tpotMs, gpuMemoryGb));
  });
}

function ruled(
  { observation, previousAction, stepIndex }: ServeWindow,
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

/** The parameters of the rule. */
export interface RuleParameters {
  readonly batchCap: number;
  /** Draft tokens at each precision. */
  readonly fp16Depth: number;
  readonly int8Depth: number;
  readonly int4Depth: number;
  /** Load, as a share of what the server can do at FP16, from which it is a rush. */
  readonly rush: number;
  /** FP16 when it is calm from this mean prompt on, tokens, where INT8 costs at least `dear` of reward a window. */
  readonly longPrompt: number;
  readonly dear: number;
  /** Share of the KV pool that is to be in use. */
  readonly kvTarget: number;
  /** Memory of each GPU that is left free for tenants, GB. */
  readonly headroomGb: number;
}

/** A rule as it is played: what it keeps, and its parameters. */
export interface ServeRule {
  /** The first window, and the division of the GPUs throughout. */
  readonly kept: ServeAction;
  readonly parameters: RuleParameters;
}

/** File of the tuned parameters; `benchmarks/run.ts tuned-rules` writes it. */
export const TUNED_RULES_URL = new URL('./tuned-rules.json', import.meta.url);

/** For a task that nothing was tuned for. */
export const UNTUNED_RULE: RuleParameters = {
  ...{ batchCap: 192, fp16Depth: 4, int8Depth: 2, int4Depth: 2 },
  ...{ rush: 0.8, longPrompt: 400, dear: 0.05, kvTarget: 0.55, headroomGb: 2 },
};

const TUNED: Readonly<Record<string, RuleParameters>> = tunedRules;

/**
 * The rule that learned policies have to beat: what an engineer writes in half an hour who knows the observation. FP16
 * while prompts are long, quality is dear and it is calm; INT8 in a rush; INT4 else. A KV pool by what is used of it and
 * by what tenants leave. Interactive requests first.
 * @param rule by default the one tuned on the training split of the task
 */
export function rulePolicy(rule?: ServeRule): Policy<ServeAction, ServeObservation> {
  return episodePolicy('rule', ({ taskId, resetOptions }) => {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    return playRule(task, rule ?? tunedRule(task));
  });
}

function tunedRule(task: ServeTask): ServeRule {
  const [kept] = llmserve.anchors.configurations(task);
  const parameters = Object.hasOwn(TUNED, task.id) ? TUNED[task.id] : UNTUNED_RULE;
  return { kept: kept!, parameters: parameters! };
}

/** The rule for any server: from the default of the task, tuned on the training distribution. */
export function anyServerRule({ defaultAction }: ServeTask): ServeRule {
  return { kept: defaultAction, parameters: TUNED[ANY_SERVER]! };
}

/** Windows for which another precision is wished before it is loaded: a reload costs some seconds of service. */
const PATIENCE = 2;

/** The rule on the server of a task. */
export function playRule(
  task: ServeTask,
  { kept, parameters }: ServeRule,
): (window: ServeWindow) => ServeAction {
  const { batchCap, rush, longPrompt, dear, kvTarget, headroomGb } = parameters;
  const depths = { FP16: parameters.fp16Depth, INT8: parameters.int8Depth, INT4: parameters.int4Depth };
  const profile = serverOf(task);
  const gpuGb = (profile.gpu.memoryGiB * GIB) / 1e9;
  const poolGb = (tier: ServeAction['quantization_tier']) => (kvMemoryGiB(profile, tier, true) * GIB) / 1e9;
  let wished = kept.quantization_tier;
  let windows = 0;
  return ({ observation: seen, previousAction: { quantization_tier, kv_budget_fraction }, stepIndex }) => {
    if (stepIndex === 0) return holdMaskedKnobs(task, kept);
    const { prompt_load, token_load, int8_charge, kv_held } = seen.relative;
    const isFine =
      isFast(seen.server, depths.FP16) && seen.mean_prompt_length >= longPrompt && int8_charge >= dear;
    const wish = prompt_load + token_load >= rush ? 'INT8' : isFine ? 'FP16' : 'INT4';
    windows = wish === wished ? windows + 1 : 1;
    wished = wish;
    const tier = windows >= PATIENCE ? wish : quantization_tier;
    const wanted = (kv_held * gpuGb) / kvTarget;
    const most =
      kv_budget_fraction * poolGb(quantization_tier) + gpuGb - headroomGb - seen.gpu_memory_used_gb;
    return holdMaskedKnobs(task, {
      ...kept,
      batch_cap: batchCap,
      quantization_tier: tier,
      speculation_depth: depths[tier],
      priority_routing: true,
      // In whole hundredths: steps do not drift.
      kv_budget_fraction: clamp(
        Math.round((100 * Math.min(wanted, most)) / poolGb(tier)) / 100,
        KV_BUDGET_RANGE,
      ),
    });
  };
}

/** Whether FP16 with so many drafts gives a lone sequence its tokens inside the interactive TPOT objective. */
function isFast(server: ServeObservation['server'], depth: number): boolean {
  const { decode_1_ms, draft_ms, draft_4_accepted, interactive_tpot_ms } = server;
  const accepted = draft_4_accepted * Math.min(1, depth / 4);
  return (decode_1_ms + depth * draft_ms) / (1 + accepted) <= interactive_tpot_ms;
}
