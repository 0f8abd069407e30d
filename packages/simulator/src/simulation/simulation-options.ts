import type { SchedulingPolicy } from '../engine/waiting-queue.ts';
import type { RouterPolicy } from '../policy/built-in.ts';
import type { Policy } from '../policy/policy.ts';
import type { EngineProfile, WeightPrecision } from '../profiles/engine-profile.ts';
import type { SimulatedSpan } from './simulation-run.ts';

/** Engines of each role. */
export interface PrefillDecodeSplit {
  readonly prefill: number;
  readonly decode: number;
}

/** An engine and its settings. */
export interface EngineSettings {
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
  /** Acceptance table of the profile. Default `sharegpt`. */
  readonly acceptance?: string;
}

/** Engines of a second kind that serve the same model. */
interface SecondPool extends EngineSettings {
  /** Engines of it beside `replicas`, behind the same router. With `split` they decode, and `split.decode` counts them. */
  readonly replicas?: number;
  /**
   * Requests in flight on one of them for one on an engine of the first kind, for the router: the weight of a server in
   * nginx's least_conn. Default 1.
   */
  readonly weight?: number;
}

/** Options of a simulation. */
export interface SimulationOptions extends EngineSettings {
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
  /**
   * Engines that only prefill and send the KV to engines that only decode, instead of `replicas`. The router spreads
   * requests over the former, and what they have prefilled over the latter.
   */
  readonly split?: PrefillDecodeSplit;
  readonly secondPool?: SecondPool;
  /**
   * Requests, or conversations where the trace has them, that are kept in flight; the trace's arrivals then tell only
   * the order. Default: requests arrive as the trace says.
   */
  readonly concurrency?: number;
  /**
   * Time after its arrival at which a client gives up a request that is not complete, ms. The iteration under way is finished;
   * what the request held is free then. Default never.
   */
  readonly clientTimeoutMs?: number;
  /** Told of every stretch of iterations of every replica. */
  readonly onIterations?: (span: SimulatedSpan) => void;
  /** Routing of requests to the replicas. Default `round_robin`. */
  readonly router?: RouterPolicy;
  /** Functions that decide instead of the router, the admission of every request and the order of the queue. */
  readonly policy?: Policy;
  /** Period of the scrapes that the policy or the router sees, ms. Default 0: it sees each request's moment. */
  readonly metricsIntervalMs?: number;
  /** Predicted tokens of each answer, which the policy sees. Default none. */
  readonly predictedOutputs?: Float64Array;
  /** Mean error of the predictions as a share of the true length, which the policy sees. */
  readonly predictedOutputError?: number;
}
