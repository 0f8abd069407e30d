import { type Policy, type PolicyFault, PolicyRun, startPolicy } from '@servegym/simulator';
import { REQUEST_CLASSES } from '../../tasks.ts';
import type { FleetAction, FleetObservation } from '../schema.ts';

/** Input of a controller's choice. */
export interface FleetControllerStep {
  readonly observation: FleetObservation;
  /** The settings in force. */
  readonly previousAction: FleetAction;
  /** Windows played so far. */
  readonly stepIndex: number;
}

/** A classic controller that the grader plays, to hold an episode against it. */
export interface FleetController {
  readonly name: string;
  /** Forgets the last episode. */
  reset(): void;
  act(step: FleetControllerStep): FleetAction;
}

/** A policy that scales a fleet. */
export type ScalingPolicy = Policy<FleetObservation>;

/** Length of a window of the shipped tasks, s: the unit of the time that a policy is told. */
const WINDOW_SECONDS = 30;

/** Plays a policy that scales. Settings that it does not name, and replicas where it answers none, stay as they are. */
export function scalingController(name: string, policy: ScalingPolicy) {
  let run = new PolicyRun(startPolicy(policy, name));
  return {
    name,
    get faults(): readonly PolicyFault[] {
      return run.faults;
    },
    reset() {
      run = new PolicyRun(startPolicy(policy, name));
    },
    act({ observation, previousAction, stepIndex }: FleetControllerStep): FleetAction {
      const asked = run.scaled(observation, previousAction, stepIndex * WINDOW_SECONDS);
      const action = { ...previousAction, ...asked };
      const { max_replicas: most } = observation.server;
      if (action.replicas === previousAction.replicas) return action;
      return { ...action, replicas: Math.max(0, Math.min(most, Math.ceil(action.replicas))) };
    },
  } satisfies FleetController & { readonly faults: readonly PolicyFault[] };
}

/** The parameters of the rule: a choice, the same for every task. */
export const STANDARD_RATE_RULE = {
  /** Prompt tokens a second that are not cached, with `outputWeight` for each output token, that a replica is given. */
  tokensPerReplica: 21_000,
  /** Work of an output token, in prompt tokens. */
  outputWeight: 6,
  /** Windows whose demand replicas are kept for. */
  memoryWindows: 4,
  /** Seconds of queue above which best effort is refused. */
  admissionSeconds: 10,
  /** Weight of prefixes in the choice of a replica, over that of few requests in flight. */
  prefixWeight: 1,
  /** Token budget of an iteration. */
  tokenBudget: 2048,
};
export type RateRuleParameters = Readonly<typeof STANDARD_RATE_RULE>;

/**
 * Replicas for the work that has arrived: the largest of the last windows' tokens a second over what a replica is given.
 * Six parameters.
 */
export function rateRule(parameters: Partial<RateRuleParameters> = {}): ScalingPolicy {
  const { tokensPerReplica, outputWeight, memoryWindows, admissionSeconds, prefixWeight, tokenBudget } = {
    ...STANDARD_RATE_RULE,
    ...parameters,
  };
  const settings = {
    routing_prefix: prefixWeight,
    admission_seconds: admissionSeconds,
    max_num_batched_tokens: tokenBudget,
  };
  return () => {
    const demand: number[] = [];
    return {
      scale(metrics, _fleet, now) {
        if (now === 0) return settings;
        demand.push(workPerSecond(metrics, outputWeight));
        if (demand.length > memoryWindows) demand.shift();
        const wanted = Math.ceil(Math.max(...demand) / tokensPerReplica);
        return { ...settings, replicas: Math.max(1, Math.min(metrics.server.max_replicas, wanted)) };
      },
    };
  };
}

/** Requests of all classes that arrived, a second. */
export function totalArrivals(observation: FleetObservation): number {
  return REQUEST_CLASSES.reduce((sum, name) => sum + observation[name].arrivals_per_second, 0);
}

/** Work that arrived: prompt tokens a second that are not cached, with `outputWeight` for each output token. */
export function workPerSecond(observation: FleetObservation, outputWeight: number): number {
  const { arrived_prompt_tokens_per_second: prompts, prefix_cache_hit_rate: cached } = observation;
  const answers = totalArrivals(observation) * observation.request_generation_tokens_mean;
  return prompts * (1 - cached) + outputWeight * answers;
}
