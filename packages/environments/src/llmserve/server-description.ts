import {
  DraftTimer,
  type EngineProfile,
  IterationTimer,
  kvPoolBlocks,
  TICKS_PER_MS,
  type WeightPrecision,
  weightChangeSeconds,
} from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import {
  type ObservedFigure,
  type RelativeFigures,
  SERVE_KNOBS,
  type ServeKnob,
  type ServeObservation,
  type ServerDescription,
} from './schema.ts';
import { activeKnobs, type ServeTask, serverOf } from './serve-task.ts';

/** Context of each decoding sequence in the times that describe a server, tokens. */
const CONTEXT = 1024;
const GB_PER_GIB = 2 ** 30 / 1e9;
/** Engines of a simulated server: GPUs, or groups of them, that serve the model. */
export const GPUS = 2;

/**
 * The server of a task in the figures of the observation. Figures of a precision or a draft that it lacks are 0.
 * @param engines as many as a real server has
 */
export function describeServer(task: ServeTask, profile: EngineProfile, engines = GPUS): ServerDescription {
  const { gpu, memory, model, speculation } = profile;
  const { objectives, reward } = task;
  const timer = (precision: WeightPrecision) => {
    const law = profile.weights[precision]?.law;
    return law === undefined ? undefined : new IterationTimer(law);
  };
  const decodeMs = (precision: WeightPrecision, sequences: number) => {
    const of = timer(precision);
    if (of === undefined) return 0;
    return (of.decodeTicks(sequences) + sequences * CONTEXT * of.contextTicks(sequences)) / TICKS_PER_MS;
  };
  const prefillMs = (tokens: number) =>
    (timer('FP16')?.fixedTicks(tokens, 0, (tokens * tokens) / 2) ?? 0) / TICKS_PER_MS;
  const accepted = speculation?.survival[task.acceptance]?.slice(0, 4) ?? [];
  const fullPool = profile.weights.FP16 === undefined ? 0 : kvPoolBlocks(profile, 'FP16', false, 1);
  const free = activeKnobs(task);
  const figures = {
    decode_1_ms: decodeMs('FP16', 1),
    decode_64_ms: decodeMs('FP16', 64),
    decode_256_ms: decodeMs('FP16', 256),
    prefill_1k_ms: prefillMs(1024),
    prefill_8k_ms: prefillMs(8192),
    int8_decode_64_ms: decodeMs('INT8', 64),
    int4_decode_64_ms: decodeMs('INT4', 64),
    int8_quality: profile.weights.INT8?.quality ?? 0,
    int4_quality: profile.weights.INT4?.quality ?? 0,
    draft_ms: speculation === null ? 0 : new DraftTimer(speculation).ticks(1, 1, CONTEXT) / TICKS_PER_MS,
    draft_4_accepted: accepted.reduce((sum, share) => sum + share, 0),
    gpu_memory_gb: gpu.memoryGiB * GB_PER_GIB,
    weights_gb: (profile.weights.FP16?.weightGiB ?? 0) * GB_PER_GIB,
    kv_tokens: Math.max(0, fullPool) * memory.blockTokens,
    kv_bytes_per_token: model.kvBytesPerToken,
    reload_s: changeSeconds(profile),
    usd_per_hour: gpu.count * gpu.usdPerHour,
    engines,
    interactive_ttft_ms: objectives.interactive.ttftMs,
    interactive_tpot_ms: objectives.interactive.tpotMs,
    batch_ttft_ms: objectives.batch.ttftMs,
    batch_tpot_ms: objectives.batch.tpotMs,
    best_effort_ttft_ms: objectives.best_effort.ttftMs,
    best_effort_tpot_ms: objectives.best_effort.tpotMs,
    throughput_weight: reward.throughput,
    slo_weight: reward.slo,
    memory_weight: reward.memory,
    cost_weight: reward.cost,
    reference_cost_per_1k: task.referenceCostPer1k,
    interactive_weight: objectives.interactive.weight,
    batch_weight: objectives.batch.weight,
    best_effort_weight: objectives.best_effort.weight,
  };
  const rounded = Object.entries(figures).map(([name, value]) => [name, Number(value.toPrecision(4))]);
  return {
    ...(Object.fromEntries(rounded) as typeof figures),
    free: Object.fromEntries(SERVE_KNOBS.map((knob) => [knob, free.includes(knob)])) as Record<
      ServeKnob,
      boolean
    >,
  };
}

/** What `GET /tasks` and prompts say of a task: the reward of a window with its prices, and what changes cost. */
export function describeTask(task: ServeTask) {
  const { objectives, reward, referenceCostPer1k } = task;
  const weights = REQUEST_CLASSES.map((kind) => `${kind} ${objectives[kind].weight}`).join(', ');
  const profile = serverOf(task);
  const { INT8, INT4 } = profile.weights;
  return {
    reward: `${reward.throughput} x tokens emitted / (emitted + owed to requests waiting) + ${reward.slo} x share of requests inside their SLO (weights: ${weights}) - ${reward.memory} x share of GPU memory that weights, draft and KV pool hold - ${reward.cost} x min(1, USD per 1k tokens / ${referenceCostPer1k}) - quality_value x (1 - quality), quality FP16 1, INT8 ${INT8?.quality}, INT4 ${INT4?.quality}; from -1 to 1.`,
    changes: `another precision stops service for ${changeSeconds(profile).toFixed(1)} s and loses the KV cache; another split drains the GPUs; a KV pool beyond the free memory stops service for ${profile.reloadSeconds} s. All else acts at once.`,
  };
}

/** A window in units of the server that it is of. @param kvPoolGb memory of the KV pool on each GPU, GB */
export function relativeFigures(
  seen: Pick<ServeObservation, ObservedFigure>,
  server: ServerDescription,
  task: ServeTask,
  kvPoolGb: number,
): RelativeFigures {
  const arrived = seen.request_arrival_rate * task.windowSeconds;
  /** Prefill of the mean prompt on one GPU, ms. */
  const prefillMs = (seen.mean_prompt_length * server.prefill_1k_ms) / 1024;
  const { engines, interactive_ttft_ms: ttftMs, interactive_tpot_ms: tpotMs, decode_1_ms: floorMs } = server;
  return {
    prompt_load: (seen.request_arrival_rate * prefillMs) / 1000 / engines,
    token_load: (seen.throughput_tps * server.decode_64_ms) / 64 / 1000 / engines,
    prompt_prefill: prefillMs / ttftMs,
    queue_windows: seen.queue_depth / (arrived + 1),
    queue_prefill: (seen.queue_depth * prefillMs) / engines / ttftMs,
    ttft_p50: seen.p50_ttft_ms / ttftMs,
    ttft_p99: seen.p99_ttft_ms / ttftMs,
    itl_p50: seen.p50_itl_ms / tpotMs,
    itl_floor: floorMs === 0 ? 0 : seen.p50_itl_ms / floorMs,
    kv_held: (seen.kv_cache_occupancy * kvPoolGb) / server.gpu_memory_gb,
    memory_free: Math.min(1, Math.max(0, 1 - seen.gpu_memory_used_gb / server.gpu_memory_gb)),
    int8_charge: seen.quality_value * (1 - server.int8_quality),
    int4_charge: seen.quality_value * (1 - server.int4_quality),
  };
}

/** Time of a change between FP16 and INT8, s; a cold start where the profile lacks one of them. */
function changeSeconds(profile: EngineProfile): number {
  const { FP16, INT8 } = profile.weights;
  return FP16 === undefined || INT8 === undefined
    ? profile.reloadSeconds
    : weightChangeSeconds(profile, 'FP16', 'INT8');
}
