import { findProfile } from '@servegym/profiles';
import {
  DraftTimer,
  type EngineProfile,
  IterationTimer,
  portableMath,
  TICKS_PER_MS,
  weightVariant,
} from '@servegym/simulator';
import { scaledProfile, type TimeFactors } from './scaled-profile.ts';
import type { ServeAction, ServeObservation, ServerDescription } from './schema.ts';
import { type ServeTask, serverOf } from './serve-task.ts';
import { describeServer } from './server-description.ts';

/** A server of which nothing is known is taken for this one at first: a choice, amid the GPUs of today. */
const PRIOR = 'h200-141gb-llama-3-8b';
const GIB = 2 ** 30;
const GB = 1e9;

/** Steps of the search, by logarithm. */
const FIRST_STEP = 0.8;
const LAST_STEP = 0.02;
const MOVES: readonly TimeFactors[] = [
  [1, 1, 1],
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
];
/** Windows seen at which the times are fitted again: often at first, while little is known; then each tenth. */
const FITS = [1, 2, 3, 5, 8, 12, 18, 26, 36];
/** Errors beyond this, by logarithm, weigh by their size and no longer by its square. */
const MOST_ERROR = 0.5;
/** Weight of a squared factor beside a squared error of all windows: a time of which nothing shows stays as it was. */
const RIDGE = 0.02;
/** Weight of the time to first token, which also has waits in it, beside that of a token. */
const FIRST_TOKEN = 0.5;
/** Most tokens that a prefill puts into an iteration: vLLM's usual budget. */
const CHUNK = 2048;

type ShownFigure =
  | ('queue_depth' | 'active_requests' | 'kv_cache_occupancy' | 'mean_prompt_length' | 'p50_ttft_ms')
  | ('throughput_tps' | 'request_arrival_rate' | 'spec_acceptance_rate' | 'gpu_memory_used_gb');

/** What a server shows of a window, as vLLM's `/metrics` has it. */
export interface ServerReading {
  readonly seen: Pick<ServeObservation, ShownFigure>;
  /** Tokens that the KV pool of an engine holds, of `vllm:cache_config_info`; 0 where it is not told. */
  readonly kvTokens: number;
  /** Engines that the figures are of. */
  readonly engines: number;
  /** Mean time between the tokens of a request, ms; 0 where there were none. */
  readonly itlMs: number;
}

interface SeenReading extends ServerReading {
  readonly action: ServeAction;
  /** Whether the precision has changed before. */
  readonly reloaded: boolean;
}

/**
 * A server of which no profile is known, identified from what it shows: the factors of three kinds of times by least
 * squares over its windows, weights and memory from the KV pool and the memory in use. Prices are the task's; what does not
 * show (quality, acceptance of drafts, reloads) is the prior's.
 */
export class ServerEstimate {
  readonly #task: ServeTask;
  readonly #readings: SeenReading[] = [];
  #factors: TimeFactors = [0, 0, 0];
  #sized = findProfile(PRIOR);
  #description: ServerDescription | undefined;

  constructor(task: ServeTask) {
    this.#task = task;
  }

  /** The server as far as it is known. */
  get description(): ServerDescription {
    const engines = this.#readings.at(-1)?.engines;
    this.#description ??= describeServer(this.#task, slowed(this.#sized, this.#factors), engines);
    return this.#description;
  }

  /** Takes in a window, and before the first what is told already. @param action in force */
  see(action: ServeAction, reading: ServerReading): void {
    const tier = action.quantization_tier;
    const reloaded = this.#readings.length > 0 && this.#readings.at(-1)!.action.quantization_tier !== tier;
    this.#readings.push({ ...reading, action, reloaded });
    const windows = this.#readings.filter(({ itlMs }) => itlMs > 0).length;
    this.#sized = this.#sizedProfile();
    if (FITS.includes(windows) || windows % 10 === 9) {
      this.#factors = fitTimes(this.#factors, (factors) => {
        const moved = factors.reduce((sum, factor) => sum + factor * factor, 0);
        return this.#error(factors) + (RIDGE * moved) / Math.max(1, windows);
      });
    }
    this.#description = undefined;
  }

  /** Mean squared error of the logarithms of latencies. */
  #error(factors: TimeFactors): number {
    const profile = slowed(this.#sized, factors);
    const drafts = profile.speculation && new DraftTimer(profile.speculation);
    const timers = new Map<string, IterationTimer>();
    let sum = 0;
    let weights = 0;
    const compare = (predicted: number, shown: number, weight: number) => {
      const error = Math.abs(portableMath.log(predicted / shown));
      sum += weight * (error < MOST_ERROR ? error * error : MOST_ERROR * (2 * error - MOST_ERROR));
      weights += weight;
    };
    for (const reading of this.#readings) {
      const { p50_ttft_ms: ttft, queue_depth: queue } = reading.seen;
      const { quantization_tier: tier, prefill_decode_split: isSplit } = reading.action;
      if (reading.itlMs === 0 || isSplit) continue;
      const timer = timers.get(tier) ?? new IterationTimer(weightVariant(profile, tier).law);
      timers.set(tier, timer);
      const predicted = predictedLatencies(timer, drafts, reading);
      compare(predicted.itlMs, reading.itlMs, 1);
      if (!reading.reloaded && queue === 0 && ttft > 0) compare(predicted.ttftMs, ttft, FIRST_TOKEN);
    }
    return weights === 0 ? 0 : sum / weights;
  }

  /** The prior with the weights, memory and price that the windows show. */
  #sizedProfile(): EngineProfile {
    const prior = findProfile(PRIOR);
    const { gpu, memory, model, speculation } = prior;
    const pools = this.#readings.map(({ action, seen, kvTokens }) => ({
      poolGiB: (kvTokens * model.kvBytesPerToken) / GIB,
      usedGiB: (seen.gpu_memory_used_gb * GB) / GIB,
      share: action.kv_budget_fraction,
      ownGiB: weightVariant(prior, action.quantization_tier).weightGiB,
      otherGiB: memory.overheadGiB + (action.speculation_depth > 0 ? (speculation?.draftGiB ?? 0) : 0),
    }));
    // Tenants hold memory at times: the least is that of the server.
    const scales = pools.flatMap(({ poolGiB, usedGiB, ownGiB, otherGiB }) =>
      poolGiB > 0 && usedGiB > poolGiB ? [Math.max(0.01, (usedGiB - poolGiB - otherGiB) / ownGiB)] : [],
    );
    const scale = scales.length === 0 ? 1 : Math.min(...scales);
    // A pool shrinks where it does not fit beside tenants.
    const limits = pools.flatMap(({ poolGiB, share, ownGiB, otherGiB }) =>
      poolGiB > 0 ? [poolGiB / share + scale * ownGiB + otherGiB] : [],
    );
    const memoryGiB = limits.length === 0 ? gpu.memoryGiB : Math.max(...limits) / memory.utilization;
    // Operators know what they pay.
    const { gpu: own } = serverOf(this.#task);
    const usdPerHour = (own.count * own.usdPerHour) / gpu.count;
    return resized(prior, scale, { memoryGiB, usdPerHour });
  }
}

/** Latencies that a window ought to have, ms: between tokens, and of the first token where nobody waits. */
function predictedLatencies(
  iteration: IterationTimer,
  drafts: DraftTimer | null,
  { seen, engines, kvTokens, itlMs: itl, action: { speculation_depth: depth } }: SeenReading,
) {
  const { mean_prompt_length: prompt } = seen;
  const tokens = 1 + depth * seen.spec_acceptance_rate;
  // Little's law: sequences that decode on average.
  const count = Math.max(1, Math.round(((seen.throughput_tps / engines) * itl) / 1000));
  const running = seen.active_requests / engines;
  const held = running >= 1 ? (seen.kv_cache_occupancy * kvTokens) / running : 0;
  const context = count * (held > 0 ? held : prompt);
  const beside = depth > 0 ? (drafts?.ticks(depth, count, context) ?? 0) : 0;
  const stepMs = (chunk: number) =>
    (iteration.fixedTicks(Math.round(count * (depth + 1) + chunk), count, (chunk * chunk) / 2) +
      context * iteration.contextTicks(count, chunk) +
      beside) /
    TICKS_PER_MS;
  const chunk = Math.min(CHUNK, prompt);
  const decodeMs = stepMs(0);
  const mixedMs = stepMs(chunk);
  /** Share of the iterations that also prefill. */
  const prefilling =
    chunk === 0
      ? 0
      : Math.min(1, ((seen.request_arrival_rate / engines) * (prompt / chunk) * itl * tokens) / 1000);
  const meanMs = decodeMs + prefilling * (mixedMs - decodeMs);
  const prefillMs = iteration.fixedTicks(Math.round(prompt), 0, (prompt * prompt) / 2) / TICKS_PER_MS;
  return { itlMs: meanMs / tokens, ttftMs: Math.max(mixedMs, prefillMs) + (running >= 1 ? meanMs / 2 : 0) };
}

/** The factors of least error, by logarithm, from some: one or all a step up or down, in steps that are halved. */
function fitTimes(start: TimeFactors, error: (factors: TimeFactors) => number): TimeFactors {
  let best = start;
  let least = error(best);
  for (let step = FIRST_STEP; step >= LAST_STEP; step /= 2) {
    // Each move twice: what one factor gains changes what the next has to.
    for (const move of [...MOVES, ...MOVES]) {
      for (const by of [step, -step]) {
        const tried = best.map((factor, i) => factor + by * move[i]!) as unknown as TimeFactors;
        const next = error(tried);
        if (next < least) [least, best] = [next, tried];
      }
    }
  }
  return best;
}

function slowed(profile: EngineProfile, factors: TimeFactors): EngineProfile {
  return scaledProfile(profile, factors.map(portableMath.exp) as unknown as TimeFactors);
}

/** Figures of a description that its times are known by. */
const TIMES = ['decode_1_ms', 'decode_64_ms', 'decode_256_ms', 'prefill_1k_ms', 'prefill_8k_ms'] as const;

/** A profile of which a description is: that of the task's server where they agree, else one that is fitted to it. */
export function describedProfile(
  task: ServeTask,
  own: EngineProfile,
  described: ServerDescription,
): EngineProfile {
  const { free: _, ...told } = describeServer(task, own, described.engines);
  if (Object.entries(told).every(([name, value]) => described[name as keyof typeof told] === value))
    return own;
  const prior = findProfile(PRIOR);
  const factors = fitTimes([0, 0, 0], (tried) => {
    const predicted = describeServer(task, slowed(prior, tried));
    return TIMES.reduce((sum, name) => {
      const error = portableMath.log(predicted[name] / described[name]);
      return sum + error * error;
    }, 0);
  });
  const scale = (described.weights_gb * GB) / GIB / weightVariant(prior, 'FP16').weightGiB;
  return resized(slowed(prior, factors), scale, {
    memoryGiB: (described.gpu_memory_gb * GB) / GIB,
    usdPerHour: described.usd_per_hour / prior.gpu.count,
  });
}

/** A profile with weights `scale` times as large on another GPU. */
function resized(
  profile: EngineProfile,
  scale: number,
  gpu: Pick<EngineProfile['gpu'], 'memoryGiB' | 'usdPerHour'>,
): EngineProfile {
  const weights = Object.entries(profile.weights).map(
    ([tier, variant]) => [tier, { ...variant, weightGiB: scale * variant.weightGiB }] as const,
  );
  return { ...profile, gpu: { ...profile.gpu, ...gpu }, weights: Object.fromEntries(weights) };
}
