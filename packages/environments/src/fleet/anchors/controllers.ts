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
  return REQUEST_CLASSES.reduce((sum, name) => sum + observation[name].arrivals_per_second, 0);
}

/** Work that arrived: prompt tokens a second that are not cached, with `outputWeight` for each output token. */
export function workPerSecond(observation: FleetObservation, outputWeight: number): number {
  const { arrived_prompt_tokens_per_second: prompts, prefix_cache_hit_rate: cached } = observation;
  const answers = totalArrivals(observation) * observation.request_generation_tokens_mean;
  return prompts * (1 - cached) + outputWeight * answers;
}

/** Windows whose recommendations a scale-down has to respect: 300 s of 30 s, the default of Kubernetes. */
const STABILIZATION_WINDOWS = 10;
/** A ratio this near to 1 changes nothing (kube-controller-manager `--horizontal-pod-autoscaler-tolerance`). */
const TOLERANCE = 0.1;
/** Syncs of the controller in a window of 30 s, one each 15 s. */
const SYNCS = 2;

/** Replicas that a metric asks for: its total over its target a replica. */
type ReplicaMetric = (step: FleetControllerStep) => {
  readonly total: number;
  readonly targetPerReplica: number;
};

/**
 * Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) with its default behaviour: `ceil(total / target)` replicas for a
 * metric with an average target, nothing within the tolerance, at most twice the replicas or 4 more in each sync, and down
 * only to the most that any sync of the last 300 s asked for.
 * https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
 */
export class ReplicaScaler implements FleetController {
  readonly name: string;
  readonly #metric: ReplicaMetric;
  readonly #recommendations: number[] = [];

  constructor(name: string, metric: ReplicaMetric) {
    this.name = name;
    this.#metric = metric;
  }

  reset(): void {
    this.#recommendations.length = 0;
  }

  act(step: FleetControllerStep): FleetAction {
    const { previousAction, observation, stepIndex } = step;
    if (stepIndex === 0) return previousAction;
    const { total, targetPerReplica } = this.#metric(step);
    const most = observation.server.max_replicas;
    let replicas = Math.max(1, previousAction.replicas);
    for (let sync = 0; sync < SYNCS; sync++) {
      const ratio = total / (replicas * targetPerReplica);
      const wanted = Math.abs(ratio - 1) <= TOLERANCE ? replicas : Math.ceil(total / targetPerReplica);
      const reachable = Math.min(wanted, Math.max(2 * replicas, replicas + 4));
      if (sync === 0) this.#recommendations.push(reachable);
      if (this.#recommendations.length > STABILIZATION_WINDOWS) this.#recommendations.shift();
      const steady = Math.max(...this.#recommendations, reachable);
      replicas = Math.max(1, Math.min(most, reachable < replicas ? Math.min(replicas, steady) : reachable));
    }
    return { ...previousAction, replicas };
  }
}
