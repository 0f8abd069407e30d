import { Engine } from '../engine/engine.ts';
import type { IterationSpan } from '../engine/engine-config.ts';
import { msFromTicks, TICKS_PER_S, ticksFromMs } from '../engine/ticks.ts';
import type { SchedulingPolicy } from '../engine/waiting-queue.ts';
import { acceptanceTable } from '../profiles/acceptance-table.ts';
import type { EngineProfile, WeightPrecision } from '../profiles/engine-profile.ts';
import { weightVariant } from '../profiles/kv-pool.ts';
import type { Trace } from '../traces/trace.ts';
import { poolBlocks } from './pool-blocks.ts';
import { Router, type RouterPolicy } from './router.ts';
import { RunCollector } from './run-collector.ts';
import { SimulationError } from './simulation-error.ts';
import type { SimulatedSpan, SimulationRun } from './simulation-run.ts';
import { tracedRequest } from './traced-request.ts';

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

/**
 * Serves a whole trace on one engine, or on several behind a router.
 * @throws SimulationError, EngineError or ProfileVariantError when the options do not fit the profile.
 */
export function simulateTrace(trace: Trace, options: SimulationOptions): SimulationRun {
  const { profile } = options;
  const weights = options.weights ?? 'FP16';
  const depth = options.speculationDepth ?? 0;
  const fraction = options.kvBudgetFraction ?? 1;
  const blocks = options.kvBlocks ?? poolBlocks(profile, weights, depth, fraction);
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
  const collector = new RunCollector(requests);
  let latest = 0;
  for (let start = 0; start < requests; start = latest) {
    latest = Math.min(start + CHUNK, requests);
    for (let id = start; id < latest; id++) {
      router.submit(tracedRequest(trace, id, origin, options.priorities));
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
  return { ...collector.run(engines), requests, kvBlocks: blocks, events: [] };
}
