import { Engine } from '../engine/engine.ts';
import type { IterationSpan } from '../engine/engine-config.ts';
import { type EngineCounters, zeroCounters } from '../engine/engine-log.ts';
import { LatencyHistogram } from '../engine/latency-histogram.ts';
import type { PromptPrefix } from '../engine/prefix-cache.ts';
import { msFromTicks, TICKS_PER_S, ticksFromMs } from '../engine/ticks.ts';
import type { SchedulingPolicy } from '../engine/waiting-queue.ts';
import { acceptanceTable } from '../profiles/acceptance-table.ts';
import type { EngineProfile, WeightPrecision } from '../profiles/engine-profile.ts';
import { kvPoolBlocks, weightVariant } from '../profiles/kv-pool.ts';
import type { Trace } from '../traces/trace.ts';
import { Router, type RouterPolicy } from './router.ts';

/** Requests handed to the engine at a time: enough to amortise the call, few enough to stay in cache. */
const CHUNK = 1024;
const MAX_REPLICAS = 1024;
/** The clock's origin moves when it is past this, well before doubles lose whole ticks (39 hours). */
const SHIFT_AT = 10 * 3600 * TICKS_PER_S;

export interface SimulationOptions {
  readonly profile: EngineProfile;
  /** Precision of the weights. Default `FP16`. */
  readonly weights?: WeightPrecision;
  /** Most sequences that run at once. Default 256. */
  readonly maxNumSeqs?: number;
  /** Token budget of an iteration. Default 2048. */
  readonly maxNumBatchedTokens?: number;
  /** Share of the memory left to KV that the pool takes, (0, 1]. Default 1. */
  readonly kvBudgetFraction?: number;
  /** KV blocks of each pool, instead of `kvBudgetFraction`. */
  readonly kvBlocks?: number;
  /** Draft tokens a decode step. Default 0. */
  readonly speculationDepth?: number;
  /** Which of the profile's acceptance tables to use. Default `sharegpt`. */
  readonly acceptance?: string;
  /** Default `fcfs`. */
  readonly schedulingPolicy?: SchedulingPolicy;
  /** Whether prompts find what is cached of their prefix. Default true, as in vLLM. */
  readonly prefixCaching?: boolean;
  /** Priority class of each request, 0 (most urgent) .. 7. Default all 0. */
  readonly priorities?: Uint8Array;
  /** Seed of the acceptance draws. Default 0. */
  readonly seed?: number;
  /** Engines that serve the trace together, each with a pool of its own. Default 1. */
  readonly replicas?: number;
  /** Told of every stretch of iterations of every replica. */
  readonly onIterations?: (span: SimulatedSpan) => void;
  /** How requests are spread over the replicas. Default `round_robin`. */
  readonly router?: RouterPolicy;
}

/** A stretch of iterations of one replica, ms after the first arrival. */
export interface SimulatedSpan extends Omit<IterationSpan, 'start' | 'end'> {
  readonly replica: number;
  readonly startMs: number;
  readonly durationMs: number;
}

/** What came of a simulated trace. The five arrays are parallel, in order of completion. */
export interface SimulationRun {
  readonly requests: number;
  readonly completed: number;
  /** Requests refused because they can never fit the KV pool. */
  readonly rejected: number;
  /** From the first arrival to the last token, ms. */
  readonly simulatedMs: number;
  /** Index of the request in the trace. */
  readonly ids: Int32Array;
  /** Arrival to the first iteration that had the request, ms. */
  readonly queueMs: Float64Array;
  /** Arrival to first token, ms. */
  readonly ttftMs: Float64Array;
  /** (last token - first token) / (output tokens - 1), ms; NaN for a request of one token. */
  readonly tpotMs: Float64Array;
  /** Arrival to last token, ms. */
  readonly e2eMs: Float64Array;
  /** Median inter-token latency, ms. */
  readonly itlP50Ms: number;
  readonly itlP99Ms: number;
  readonly counters: EngineCounters;
  /** KV blocks of each replica. */
  readonly kvBlocks: number;
}

/** A configuration that cannot be simulated: the profile lacks something, or nothing is left for KV. */
export class SimulationError extends Error {
  override readonly name = 'SimulationError';
  readonly code = 'SIMULATION_OPTION';
}

/**
 * Serves a whole trace on one engine, or on several behind a router.
 * @throws SimulationError, EngineError or ProfileVariantError when the options do not fit the profile.
 */
export function simulateTrace(trace: Trace, options: SimulationOptions): SimulationRun {
  const { profile } = options;
  const weights = options.weights ?? 'FP16';
  const depth = options.speculationDepth ?? 0;
  const fraction = options.kvBudgetFraction ?? 1;
  const blocks = options.kvBlocks ?? kvPoolBlocks(profile, weights, depth > 0, fraction);
  if (blocks < 1) {
    throw new SimulationError(
      `Nothing is left for the KV pool: ${weights} weights of \`${profile.name}\` and its activations fill the GPU`,
    );
  }
  const replicas = options.replicas ?? 1;
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > MAX_REPLICAS) {
    throw new SimulationError(
      `Expected \`replicas\` to be a whole number from 1 to ${MAX_REPLICAS}, got \`${replicas}\``,
    );
  }
  if (options.router === 'priority' && replicas === 1) {
    throw new SimulationError(
      'Expected at least 2 replicas for the `priority` router, which keeps one for the urgent class',
    );
  }
  const { onIterations } = options;
  let origin = 0;
  const newEngine = (_: unknown, replica: number) =>
    new Engine(
      {
        law: weightVariant(profile, weights).law,
        maxNumSeqs: options.maxNumSeqs ?? 256,
        kvBlocks: blocks,
        schedulingPolicy: options.schedulingPolicy ?? 'fcfs',
        speculationDepth: depth,
        speculation: profile.speculation,
        survival: depth > 0 ? acceptanceTable(profile, options.acceptance ?? 'sharegpt') : [],
      },
      {
        blockTokens: profile.memory.blockTokens,
        maxNumBatchedTokens: options.maxNumBatchedTokens ?? 2048,
        requestOverheadMs: profile.requestOverheadMs,
        requestOverheadJitter: profile.requestOverheadJitter,
        seed: options.seed ?? 0,
        prefixCaching: options.prefixCaching ?? true,
        ...(onIterations && {
          onIterations: ({ start, end, ...span }: IterationSpan) =>
            onIterations({
              ...span,
              replica,
              startMs: msFromTicks(start + origin),
              durationMs: msFromTicks(end - start),
            }),
        }),
      },
    );
  const engines = Array.from({ length: replicas }, newEngine);
  const router = new Router(engines, options.router ?? 'round_robin');

  const requests = trace.arrivalMs.length;
  const collector = new Collector(requests);
  let latest = 0;
  for (let start = 0; start < requests; start = latest) {
    latest = Math.min(start + CHUNK, requests);
    for (let id = start; id < latest; id++) {
      router.submit({
        id,
        arrival: ticksFromMs(trace.arrivalMs[id]) - origin,
        input: trace.inputTokens[id],
        output: trace.outputTokens[id],
        priority: options.priorities === undefined ? 0 : options.priorities[id],
        prefix: promptPrefix(trace, id),
      });
    }
    const last = latest === requests;
    const until = last ? Number.POSITIVE_INFINITY : ticksFromMs(trace.arrivalMs[latest - 1]) - origin;
    for (const engine of engines) {
      engine.runUntil(until);
      collector.take(engine, origin);
    }
    const shift = Math.min(...engines.map((engine) => engine.now));
    if (shift > SHIFT_AT) {
      for (const engine of engines) engine.shiftClock(shift);
      origin += shift;
    }
  }
  const counters = sumOfCounters(engines);
  const interTokenLatency = new LatencyHistogram();
  for (const engine of engines) interTokenLatency.merge(engine.interTokenLatency);
  return {
    ...collector.columns(),
    requests,
    completed: counters.completed,
    rejected: counters.rejected,
    simulatedMs: collector.lastTokenMs,
    itlP50Ms: interTokenLatency.quantileMs(0.5),
    itlP99Ms: interTokenLatency.quantileMs(0.99),
    counters,
    kvBlocks: blocks,
  };
}

function sumOfCounters(engines: readonly Engine[]): EngineCounters {
  const sum = zeroCounters();
  for (const engine of engines) {
    for (const name of Object.keys(sum) as (keyof EngineCounters)[]) sum[name] += engine.counters[name];
  }
  return sum;
}

/** The block hashes of a request, when the trace has them. */
function promptPrefix({ prefixBlocks }: Trace, id: number): PromptPrefix | null {
  if (prefixBlocks === undefined) return null;
  const { blockTokens, ids, offsets } = prefixBlocks;
  return { chunkTokens: blockTokens, ids: ids.subarray(offsets[id], offsets[id + 1]) };
}

/** Gathers completions chunk by chunk, so that the engine's logs stay small. */
class Collector {
  lastTokenMs = 0;
  private count = 0;
  private readonly ids: Int32Array;
  private readonly queueMs: Float64Array;
  private readonly ttftMs: Float64Array;
  private readonly tpotMs: Float64Array;
  private readonly e2eMs: Float64Array;

  constructor(capacity: number) {
    this.ids = new Int32Array(capacity);
    this.queueMs = new Float64Array(capacity);
    this.ttftMs = new Float64Array(capacity);
    this.tpotMs = new Float64Array(capacity);
    this.e2eMs = new Float64Array(capacity);
  }

  take(engine: Engine, origin: number): void {
    const { count, ids, arrivals, scheduled, firstTokens, lastTokens, outputs } = engine.completions;
    for (let i = 0; i < count; i++) {
      const at = this.count++;
      this.ids[at] = ids[i];
      this.queueMs[at] = msFromTicks(scheduled[i] - arrivals[i]);
      this.ttftMs[at] = msFromTicks(firstTokens[i] - arrivals[i]);
      this.tpotMs[at] = msFromTicks(lastTokens[i] - firstTokens[i]) / (outputs[i] - 1);
      this.e2eMs[at] = msFromTicks(lastTokens[i] - arrivals[i]);
    }
    if (count > 0) this.lastTokenMs = Math.max(this.lastTokenMs, msFromTicks(lastTokens[count - 1] + origin));
    engine.completions.clear();
    engine.firstTokens.clear();
  }

  columns(): Pick<SimulationRun, 'ids' | 'queueMs' | 'ttftMs' | 'tpotMs' | 'e2eMs'> {
    const end = this.count;
    return {
      ids: this.ids.subarray(0, end),
      queueMs: this.queueMs.subarray(0, end),
      ttftMs: this.ttftMs.subarray(0, end),
      tpotMs: this.tpotMs.subarray(0, end),
      e2eMs: this.e2eMs.subarray(0, end),
    };
  }
}
