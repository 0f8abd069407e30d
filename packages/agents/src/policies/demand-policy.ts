import {
  type FleetAction,
  type FleetObservation,
  fleet,
  totalArrivals,
  workPerSecond,
} from '@servegym/environments';
import { z } from 'zod';
import type { Policy, PolicyStep } from '../core/policy.ts';

const positive = z.number().positive().max(1e9);

/** The parameters of `DemandPolicy`. */
export const demandParameters = z.object({
  /** Prompt tokens a second that are not cached, with `outputWeight` for each output token, that a replica is given. */
  tokensPerReplica: positive,
  /** Work of an output token, in prompt tokens. */
  outputWeight: z.number().min(0).max(1e9),
  /** Share of the largest demand so far that is still provided for a window later. */
  decay: z.number().min(0).max(1),
  /** Share of a sudden rise of the demand that is provided beyond it. */
  surge: z.number().min(0).max(1e9),
  /** Replicas beyond those that the demand asks for. */
  spareReplicas: z.number().min(-100).max(100),
  /** Share of the waiting work that is to be done in the next window. */
  backlog: z.number().min(0).max(1e9),
  /** Seconds of queue above which best effort is refused. */
  admissionSeconds: z.number().min(0).max(1e9),
  /** Weight of prefixes in the choice of a replica, over that of few requests in flight. */
  prefixWeight: positive,
  /** Token budget of an iteration. */
  tokenBudget: positive,
});
export type DemandParameters = Readonly<z.infer<typeof demandParameters>>;

/** Weight of a window in the mean work of a request: it remembers about ten minutes. A choice. */
const NEW_WEIGHT = 0.05;

/** A rise of the demand from one window to the next is sudden from this ratio on. A choice. */
const SUDDEN = 1.25;
/** Time over which waiting work is divided, s. */
const WINDOW_SECONDS = 30;

const { admission_seconds, max_num_batched_tokens } = fleet.actionSchema.shape;

/**
 * Replicas for the requests that arrive and for those that wait, each taken to be as much work as the mean over the last
 * minutes: lengths vary too much for those of one window to say what the next will bring. A sudden rise is met with more
 * than it asks for, as it goes on while replicas start.
 */
export class DemandPolicy implements Policy<FleetAction, FleetObservation> {
  readonly name = 'cem';
  readonly #parameters: DemandParameters;
  readonly #settings: Partial<FleetAction>;
  #kept = 0;
  /** Demand of the last window; NaN before the first. */
  #lastDemand = Number.NaN;
  /** Mean work of a request, tokens; NaN before the first. */
  #requestWork = Number.NaN;

  constructor(parameters: DemandParameters) {
    const { admissionSeconds, prefixWeight, tokenBudget } = parameters;
    this.#parameters = parameters;
    this.#settings = {
      routing_queue: Math.min(1, 1 / prefixWeight),
      routing_prefix: Math.min(1, prefixWeight),
      admission_seconds: Math.min(admission_seconds.maxValue!, admissionSeconds),
      max_num_batched_tokens: Math.min(
        max_num_batched_tokens.maxValue!,
        Math.max(max_num_batched_tokens.minValue!, Math.round(tokenBudget)),
      ),
    };
  }

  reset(): void {
    this.#kept = 0;
    this.#lastDemand = Number.NaN;
    this.#requestWork = Number.NaN;
  }

  act({ observation, previousAction, stepIndex }: PolicyStep<FleetAction, FleetObservation>): FleetAction {
    const wanted = stepIndex === 0 ? previousAction.replicas : this.#replicas(observation);
    const replicas = Math.max(1, Math.min(observation.server.max_replicas, wanted));
    return { ...previousAction, ...this.#settings, replicas };
  }

  #replicas(observation: FleetObservation): number {
    const { tokensPerReplica, outputWeight, decay, surge, spareReplicas, backlog } = this.#parameters;
    const arrivals = totalArrivals(observation);
    if (arrivals > 0) {
      const work = workPerSecond(observation, outputWeight) / arrivals;
      this.#requestWork = Number.isNaN(this.#requestWork)
        ? work
        : this.#requestWork + NEW_WEIGHT * (work - this.#requestWork);
    }
    const requestWork = this.#requestWork || 0;
    const demand = arrivals * requestWork;
    const sudden = Math.max(0, demand - SUDDEN * this.#lastDemand) || 0;
    this.#lastDemand = demand;
    this.#kept = Math.max(demand + surge * sudden, decay * this.#kept);
    const waits = (observation.num_requests_waiting * requestWork) / WINDOW_SECONDS;
    return Math.ceil((this.#kept + backlog * waits) / tokensPerReplica + spareReplicas);
  }
}
