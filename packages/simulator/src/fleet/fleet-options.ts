import { expectInteger, expectNumber, MAX_BATCHED_TOKENS } from '../engine/engine-config.ts';
import type { CompletionLog, EngineRequest, FirstTokenLog } from '../engine/engine-log.ts';
import type { RoutingWeights } from '../policy/built-in.ts';
import type { Policy, PolicyFunctions } from '../policy/policy.ts';
import type { Predicted } from '../policy/views.ts';
import type { EngineProfile, WeightPrecision } from '../profiles/engine-profile.ts';
import { wrongSetting } from '../simulator-error.ts';
import type { FleetFault } from './faults.ts';
import type { Replica } from './replica.ts';

/** Most replicas of a fleet, those that start and drain included. */
export const MAX_FLEET_REPLICAS = 32;

/** Replicas of one kind: a model on one GPU, or on a tensor-parallel group. */
export interface FleetPool {
  readonly profile: EngineProfile;
  /** Precision of the weights. Default FP16. */
  readonly weights?: WeightPrecision;
  /** Least and most seconds from the request for a replica until it serves; drawn evenly for each replica. */
  readonly coldStartSeconds: readonly [number, number];
  /** Spot capacity: the provider takes a ready replica back so many times an hour, after a notice. Default: it never does. */
  readonly reclaim?: { readonly perHour: number; readonly noticeSeconds: number } | undefined;
}

/** Settings that an operator or an autoscaler changes while a fleet serves. */
export interface FleetSettings {
  /** Replicas wanted of each pool. Together at most the fleet's `maxReplicas`. */
  readonly replicas: readonly number[];
  /** Of the ready replicas, those that only prefill; at least one other is left to decode. 0: every replica does both. */
  readonly prefillReplicas: number;
  readonly routing: RoutingWeights;
  /**
   * Seconds of queue above which requests of class 2 and up (best effort) are refused, and above twice of which those of
   * class 1 (batch) are. `Infinity` refuses nobody.
   */
  readonly admissionSeconds: number;
  /** Token budget of an iteration (vLLM max_num_batched_tokens). */
  readonly maxNumBatchedTokens: number;
  /** Most sequences that run at once on a replica (vLLM max_num_seqs). */
  readonly maxNumSeqs: number;
}

/** Fixed settings of a fleet. */
export interface FleetOptions {
  readonly pools: readonly FleetPool[];
  /** Replicas that there are GPUs for, 1..32, those that drain included: a start waits for a GPU. Default 32. */
  readonly maxReplicas?: number;
  /**
   * Period at which the gateway sees the replicas' metrics, ms. Replicas start, stop and fail, and answers lead to new
   * requests, at these times only. Default 1000.
   */
  readonly metricsIntervalMs?: number;
  /** Failures of a serving replica an hour: it loses all KV, its requests are sent anew, and it starts cold. Default 0. */
  readonly failuresPerHour?: number;
  /** Seed of cold starts, failures, engines and the random numbers of the policy. Default 0. */
  readonly seed?: number;
  /** Functions that decide instead of `routing` and `admissionSeconds`; `scale` is for the caller. */
  readonly policy?: Policy;
  /** Functions that decide where the policy does not, instead of `routing` and `admissionSeconds`. */
  readonly standard?: PolicyFunctions;
  /** What goes wrong, and when; looked at once an interval. Default nothing. */
  readonly faults?: readonly FleetFault[];
}

/** A request as it comes to the gateway. `priority`: 0 interactive, 1 batch, 2 best effort; at most 7. */
export type FleetRequest = Required<Omit<EngineRequest, 'view' | 'adapter'>> & {
  /** Its LoRA adapter. Default the base model. */
  readonly adapter?: number | undefined;
  /** Predicted length of its answer, where somebody predicts it. */
  readonly predicted?: Predicted | undefined;
};

/** `admission`: the queue was too long for its class. `never_fits`: it is larger than a replica's KV pool. */
type RefusalReason = 'admission' | 'never_fits';

/**
 * Told at the end of each metrics interval of what happened in it. May submit requests. The arrival in a log is that at
 * the replica: later than that at the gateway for a request that waited there, or whose first replica failed.
 */
export interface FleetListener {
  /** First tokens of a replica, before its completions. With a prefill role it is the prefill replica that gives them. */
  firstTokens(log: FirstTokenLog, replica: Replica): void;
  completions(log: CompletionLog, replica: Replica): void;
  refused(id: number, tick: number, reason: RefusalReason): void;
}

/** The options with their defaults. @throws SimulatorError naming the option that is out of range. */
export function settledOptions(options: FleetOptions) {
  const { pools, maxReplicas = MAX_FLEET_REPLICAS, metricsIntervalMs = 1000, failuresPerHour = 0 } = options;
  const { seed = 0, faults = [] } = options;
  if (pools.length === 0) throw wrongSetting('FLEET_SETTING', 'pools', 'at least one pool', 0);
  expectInteger('FLEET_SETTING', 'maxReplicas', maxReplicas, 1, MAX_FLEET_REPLICAS);
  expectNumber('FLEET_SETTING', 'metricsIntervalMs', metricsIntervalMs, 1, 60_000);
  expectNumber('FLEET_SETTING', 'failuresPerHour', failuresPerHour, 0, 3600);
  for (const [at, { coldStartSeconds, reclaim }] of pools.entries()) {
    const [least, most] = coldStartSeconds;
    expectNumber('FLEET_SETTING', `pools[${at}].coldStartSeconds[0]`, least, 0, 3600);
    expectNumber('FLEET_SETTING', `pools[${at}].coldStartSeconds[1]`, most, least, 3600);
    if (reclaim === undefined) continue;
    expectNumber('FLEET_SETTING', `pools[${at}].reclaim.perHour`, reclaim.perHour, 0, 3600);
    expectNumber('FLEET_SETTING', `pools[${at}].reclaim.noticeSeconds`, reclaim.noticeSeconds, 0, 3600);
  }
  return { ...options, maxReplicas, metricsIntervalMs, failuresPerHour, seed, faults };
}

/** @throws SimulatorError naming the setting that is out of range. */
export function checkFleetSettings(settings: FleetSettings, pools: number, maxReplicas: number): void {
  const { replicas, prefillReplicas, routing, admissionSeconds, maxNumBatchedTokens, maxNumSeqs } = settings;
  if (replicas.length !== pools) {
    throw wrongSetting('FLEET_SETTING', 'replicas', `a number for each of ${pools} pools`, replicas.length);
  }
  let total = 0;
  for (const [at, count] of replicas.entries()) {
    expectInteger('FLEET_SETTING', `replicas[${at}]`, count, 0, maxReplicas);
    total += count;
  }
  expectInteger('FLEET_SETTING', 'replicas', total, 0, maxReplicas);
  expectInteger('FLEET_SETTING', 'prefillReplicas', prefillReplicas, 0, maxReplicas);
  for (const name of ['queue', 'cache', 'prefix'] as const) {
    expectNumber('FLEET_SETTING', `routing.${name}`, routing[name], 0, 1e6);
  }
  expectNumber('FLEET_SETTING', 'admissionSeconds', admissionSeconds, 0, Number.POSITIVE_INFINITY);
  expectInteger('FLEET_SETTING', 'maxNumBatchedTokens', maxNumBatchedTokens, 1, MAX_BATCHED_TOKENS);
  expectInteger('FLEET_SETTING', 'maxNumSeqs', maxNumSeqs, 1, maxNumBatchedTokens);
}
