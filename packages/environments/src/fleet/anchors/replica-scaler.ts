import type { FleetAction } from '../schema.ts';
import type { FleetController, FleetControllerStep } from './fleet-controller.ts';
import { recordedFleetReference } from './reference-returns.ts';

/** Windows whose recommendations a scale-down has to respect: 300 s of 30 s, the default of Kubernetes. */
const STABILIZATION_WINDOWS = 10;
/** A ratio this near to 1 changes nothing (kube-controller-manager `--horizontal-pod-autoscaler-tolerance`). */
const TOLERANCE = 0.1;
/** Syncs of the controller in a window of 30 s, one each 15 s. */
const SYNCS = 2;

/** Requests in flight a replica that `hpa` aims at on tasks without a record: a choice. */
const IN_FLIGHT_TARGET = 40;

/** Replicas that a metric asks for: its total over its target a replica. */
export interface ReplicaMetric {
  readonly total: number;
  readonly targetPerReplica: number;
}

/**
 * Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) with its default behaviour: `ceil(total / target)` replicas for a
 * metric with an average target, nothing within the tolerance, at most twice the replicas or 4 more in each sync, and down
 * only to the most that any sync of the last 300 s asked for.
 * https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
 */
export class ReplicaScaler implements FleetController {
  readonly name: string;
  readonly #metric: (step: FleetControllerStep) => ReplicaMetric;
  readonly #recommendations: number[] = [];

  constructor(name: string, metric: (step: FleetControllerStep) => ReplicaMetric) {
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

/**
 * The autoscaler on requests that wait or run: the default that scores are held against.
 * @param target requests a replica. Default: the best in training on the task that is played, by its record
 */
export function hpaInFlight(target?: number): ReplicaScaler {
  return new ReplicaScaler(target === undefined ? 'hpa' : `hpa:${target}`, ({ observation }) => ({
    total: observation.num_requests_running + observation.num_requests_waiting,
    targetPerReplica:
      target ?? recordedFleetReference(observation.task_id)?.inFlightTarget ?? IN_FLIGHT_TARGET,
  }));
}
