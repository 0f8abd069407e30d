import type { FleetAction, FleetObservation } from '../schema.ts';
import { FLEET_CLASSES } from '../tasks/fleet-task.ts';
import type { FleetController, FleetControllerStep } from './fleet-controller.ts';

/** The parameters of the rule. */
export interface RateRuleParameters {
  /** Prompt tokens a second that are not cached, with `outputWeight` for each output token, that a replica is given. */
  readonly tokensPerReplica: number;
  /** Work of an output token, in prompt tokens. */
  readonly outputWeight: number;
  /** Windows whose demand replicas are kept for. */
  readonly memoryWindows: number;
  /** Seconds of queue above which best effort is refused. */
  readonly admissionSeconds: number;
  /** Weight of prefixes in the choice of a replica, over that of few requests in flight. */
  readonly prefixWeight: number;
  /** Token budget of an iteration. */
  readonly tokenBudget: number;
}

/** A choice, the same for every task. */
export const STANDARD_RATE_RULE: RateRuleParameters = {
  tokensPerReplica: 21_000,
  outputWeight: 6,
  memoryWindows: 4,
  admissionSeconds: 10,
  prefixWeight: 1,
  tokenBudget: 2048,
};

/**
 * Replicas for the work that has arrived: the largest of the last windows' tokens a second over what a replica is given.
 * Six parameters.
 */
export class RateRule implements FleetController {
  readonly name = 'rule';
  readonly #parameters: RateRuleParameters;
  readonly #demand: number[] = [];

  constructor(parameters: Partial<RateRuleParameters> = {}) {
    this.#parameters = { ...STANDARD_RATE_RULE, ...parameters };
  }

  reset(): void {
    this.#demand.length = 0;
  }

  act({ observation, previousAction, stepIndex }: FleetControllerStep): FleetAction {
    const { tokensPerReplica, outputWeight, memoryWindows, admissionSeconds, prefixWeight, tokenBudget } =
      this.#parameters;
    const settings = {
      ...previousAction,
      routing_queue: Math.min(1, 1 / prefixWeight),
      routing_prefix: Math.min(1, prefixWeight),
      admission_seconds: admissionSeconds,
      max_num_batched_tokens: tokenBudget,
    };
    if (stepIndex === 0) return settings;
    this.#demand.push(workPerSecond(observation, outputWeight));
    if (this.#demand.length > memoryWindows) this.#demand.shift();
    const wanted = Math.ceil(Math.max(...this.#demand) / tokensPerReplica);
    return { ...settings, replicas: Math.max(1, Math.min(observation.server.max_replicas, wanted)) };
  }
}

/** Requests of all classes that arrived, a second. */
export function totalArrivals(observation: FleetObservation): number {
  return FLEET_CLASSES.reduce((sum, name) => sum + observation[name].arrivals_per_second, 0);
}

/** Work that arrived: prompt tokens a second that are not cached, with `outputWeight` for each output token. */
export function workPerSecond(observation: FleetObservation, outputWeight: number): number {
  const { arrived_prompt_tokens_per_second: prompts, prefix_cache_hit_rate: cached } = observation;
  const answers = totalArrivals(observation) * observation.request_generation_tokens_mean;
  return prompts * (1 - cached) + outputWeight * answers;
}
