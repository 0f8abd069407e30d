import {
  FLEET_ACTION_BINS,
  type FleetAction,
  type FleetObservation,
  totalArrivals,
  workPerSecond,
} from '@servegym/environments';
import type { FleetPolicy, FleetStep } from './fleet-policy.ts';

/** Settings of a fleet that keeps up, and of one that is behind. */
export interface SurgeSettings {
  /** Share of the largest demand so far that is still provided for a window later. */
  readonly decay: number;
  /** Replicas beyond those that the demand asks for, as a share of them. */
  readonly headroom: number;
  readonly admissionSeconds: number;
  readonly tokenBudget: number;
}

/** The parameters of `SurgePolicy`. */
export interface SurgeParameters {
  /** Prompt tokens a second that are not cached, with `outputWeight` for each output token, that a replica is given. */
  readonly tokensPerReplica: number;
  /** Work of an output token, in prompt tokens. */
  readonly outputWeight: number;
  /** Part of the change over the last seconds of a window that is taken to go on. */
  readonly trend: number;
  /** Part of the work that waits which is to be done in the next window. */
  readonly backlog: number;
  /** Interactive requests inside their objectives, as a share, below which the fleet is behind. */
  readonly behindBelow: number;
  /** Weight of prefixes in the choice of a replica, over that of few requests in flight. */
  readonly prefixWeight: number;
  readonly calm: SurgeSettings;
  readonly behind: SurgeSettings;
}

/** Changes over the last seconds of a window up to this share are noise. */
const NOISE = 0.2;
/** Work that waits is divided over a window of this length, s. */
const WINDOW_SECONDS = 30;

/**
 * Replicas for the demand that the last seconds of a window foretell and for what waits, with settings of their own for
 * the time in which the fleet is behind and most interactive requests come too late.
 */
export class SurgePolicy implements FleetPolicy {
  readonly name = 'cem';
  readonly #parameters: SurgeParameters;
  #kept = 0;

  constructor(parameters: SurgeParameters) {
    this.#parameters = parameters;
  }

  reset(): void {
    this.#kept = 0;
  }

  act({ observation, previousAction, stepIndex }: FleetStep): FleetAction {
    const { prefixWeight, calm, behind, behindBelow } = this.#parameters;
    const settings = observation.interactive.slo_attainment < behindBelow ? behind : calm;
    const wanted = stepIndex === 0 ? previousAction.replicas : this.#replicas(observation, settings);
    return {
      ...previousAction,
      replicas: Math.max(1, Math.min(observation.server.max_replicas, wanted)),
      routing_queue: Math.min(1, 1 / prefixWeight),
      routing_prefix: Math.min(1, prefixWeight),
      admission_seconds: settings.admissionSeconds,
      max_num_batched_tokens: settings.tokenBudget,
    };
  }

  #replicas(observation: FleetObservation, { decay, headroom }: SurgeSettings): number {
    const { tokensPerReplica, outputWeight, trend, backlog } = this.#parameters;
    const demand = workPerSecond(observation, outputWeight);
    const arrivals = totalArrivals(observation);
    if (arrivals === 0) {
      this.#kept *= decay;
      return Math.ceil(this.#kept / tokensPerReplica);
    }
    const change = observation.arrivals_last_seconds / arrivals - 1;
    const beyondNoise = Math.sign(change) * Math.max(0, Math.abs(change) - NOISE);
    this.#kept = Math.max(demand * Math.max(0, 1 + trend * beyondNoise), decay * this.#kept);
    const waits = (observation.num_requests_waiting * demand) / arrivals / WINDOW_SECONDS;
    return Math.ceil(((1 + headroom) * this.#kept + backlog * waits) / tokensPerReplica);
  }
}

/** Settings that a search tries, calm and in a surge. */
export const SURGE_BINS = {
  admissionSeconds: FLEET_ACTION_BINS.admission_seconds,
  tokenBudget: FLEET_ACTION_BINS.max_num_batched_tokens,
} as const;
