import type { IterationSpan } from '../engine/engine-config.ts';
import type { EngineCounters } from '../engine/engine-log.ts';
import type { PolicyFault } from '../policy/policy.ts';
import type { Summary } from '../statistics/summary.ts';

/** A stretch of iterations of one replica, ms after the first arrival. */
export interface SimulatedSpan extends Omit<IterationSpan, 'start' | 'end'> {
  readonly replica: number;
  readonly startMs: number;
  readonly durationMs: number;
}

/** Totals of a simulated trace. */
export interface SimulationTotals {
  readonly requests: number;
  readonly completed: number;
  /** Requests refused because they can never fit the KV pool. */
  readonly rejected: number;
  /** With a time-out of clients: requests that they gave up. */
  readonly aborted?: number;
  /** From the first arrival to the last token, ms. */
  readonly simulatedMs: number;
  /** Median inter-token latency, ms. */
  readonly itlP50Ms: number;
  readonly itlP99Ms: number;
  readonly counters: EngineCounters;
  /** KV blocks of each replica when it began. */
  readonly kvBlocks: number;
  /** With a policy: requests that it refused, and the faults of its functions. */
  readonly policy?: { readonly refused: number; readonly faults: readonly PolicyFault[] };
}

/** Results of a simulated trace, without the single requests. Latencies in ms, as `SimulationRun` has them. */
export interface SimulationSummary extends SimulationTotals {
  readonly ttft: Summary;
  /** Of requests of more than one token. */
  readonly tpot: Summary;
  readonly e2e: Summary;
}

/** Results of a simulated trace. The five arrays are parallel, in order of completion. */
export interface SimulationRun extends SimulationTotals {
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
  /** Arrival, ms after the first, where arrivals depend on answers: with conversations or a concurrency. */
  readonly arrivalMs?: Float64Array;
}
