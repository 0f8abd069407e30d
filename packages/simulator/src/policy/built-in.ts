import { definePolicy, type Policy, type PolicyFunctions } from './policy.ts';
import type { ReplicaView, RequestView } from './views.ts';

const loadOf = (replica: ReplicaView) => replica.requests_in_flight / replica.weight;

/** To the replica with the fewest requests waiting and running. */
export const leastLoaded = definePolicy({
  ties: 'first',
  score: (_request, replica) => -loadOf(replica),
}) as PolicyFunctions;

/** As `leastLoaded`, with the first replica kept for the most urgent class, which may go anywhere. */
const priority = definePolicy({
  ties: 'first',
  score: (request, replica) =>
    request.priority > 0 && replica.index === 0 ? Number.NEGATIVE_INFINITY : -loadOf(replica),
}) as PolicyFunctions;

/** Weights of the properties by which the gateway chooses a replica, each 0 or more. All 0: in turns. */
export interface RoutingWeights {
  /** Few requests in flight, relative to the other replicas. */
  readonly queue: number;
  /** Free KV blocks. */
  readonly cache: number;
  /** Share of the prompt that the gateway has sent to the replica before. */
  readonly prefix: number;
}

/**
 * By a weighted sum of scores in [0, 1], as the gateways of Kubernetes' inference extension do: queue, KV-cache
 * utilisation and prefix-cache scorers.
 */
export function weighted({ queue, cache, prefix }: RoutingWeights): PolicyFunctions {
  let scored: RequestView | null = null;
  let among: readonly ReplicaView[] = [];
  let most = 0;
  let span = 1;
  // A request is routed twice where prefill and decode are apart, among different replicas.
  const compare = (request: RequestView, replicas: readonly ReplicaView[]) => {
    scored = request;
    among = replicas;
    let fewest = Number.POSITIVE_INFINITY;
    most = 0;
    for (const replica of replicas) {
      const load = loadOf(replica);
      if (load < fewest) fewest = load;
      if (load > most) most = load;
    }
    span = Math.max(1, most - fewest);
  };
  return {
    score(request, replica, _now, { replicas }) {
      if (request !== scored || replicas !== among) compare(request, replicas);
      const free = cache === 0 ? 0 : 1 - replica.kv_cache_usage_perc;
      const spare = queue * ((most - loadOf(replica)) / span) + cache * free;
      if (prefix === 0) return spare;
      return spare + (prefix * replica.prefix_match_tokens) / request.prompt_tokens;
    },
  };
}

/** What `kvAware` goes by; each 1 by default. */
export interface KvCosts {
  /** Weight of a prompt token that is to be computed, of those before this prompt too; a token in the KV cache has 1. */
  readonly prefillLoadScale?: number;
  /** Prompt tokens that one whose KV the replica has makes up for. */
  readonly overlapScoreCredit?: number;
}

/**
 * To the replica where a prompt costs least, as Dynamo's KV router: prompt tokens to be computed, less those that it has of
 * this prompt, and KV in use. Among those that decode for others, to the one with the fewest requests.
 */
export function kvAware({ prefillLoadScale = 1, overlapScoreCredit = 1 }: KvCosts = {}): PolicyFunctions {
  return {
    score(request, replica) {
      if (replica.role === 'decode') return -loadOf(replica);
      const queued = replica.prompt_tokens_queued;
      const credit = overlapScoreCredit * replica.prefix_cached_tokens;
      const prefill = Math.max(0, queued + request.prompt_tokens - credit);
      const inUse = replica.kv_cache_usage_perc * replica.kv_cache_tokens;
      return -(prefillLoadScale * prefill + inUse + queued) / replica.weight;
    },
  };
}

/** First class that admission refuses as soon as the queue is too long, and the one before it, refused at twice that. */
const BEST_EFFORT = 2;
const BATCH = 1;

/** Refuses best effort above so many seconds of queue, and batch above twice as many. */
export function admissionByClass(seconds: number): PolicyFunctions {
  return {
    admit: (request, { queue_seconds: queue }) =>
      !(
        (request.priority >= BEST_EFFORT && queue > seconds) ||
        (request.priority === BATCH && queue > 2 * seconds)
      ),
  };
}

/**
 * Routing of requests to replicas. `round_robin`: in turns. `least_loaded`: to the replica with the fewest
 * requests waiting and running at the moment of arrival. `priority`: as `least_loaded`, with the first replica kept for
 * the most urgent class, which may go anywhere. `prefix_aware`: by the sum of two scores from 0 to 1, few requests
 * relative to the other replicas and the share of the prompt that the replica was sent before. `kv_aware`: where the
 * prompt costs least by what replicas hold and have to compute, see `kvAware`.
 */
export type RouterPolicy = 'round_robin' | 'least_loaded' | 'priority' | 'prefix_aware' | 'kv_aware';

/** The functions of a named router, for one run. */
export const ROUTERS: Readonly<Record<RouterPolicy, () => PolicyFunctions>> = {
  round_robin: () => ({}),
  least_loaded: () => leastLoaded,
  priority: () => priority,
  prefix_aware: () => weighted({ queue: 1, cache: 0, prefix: 1 }),
  kv_aware: () => kvAware(),
};

/** All of them. */
export const ROUTER_POLICIES = Object.keys(ROUTERS) as readonly RouterPolicy[];

/** A ratio this near to 1 changes nothing (kube-controller-manager `--horizontal-pod-autoscaler-tolerance`). */
const TOLERANCE = 0.1;
/** Period of the controller, s. */
const SYNC_SECONDS = 15;

/** What a metric asks for: its total over its target a replica, of at most so many. */
type ReplicaMetric<Metrics> = (metrics: Metrics) => {
  readonly total: number;
  readonly targetPerReplica: number;
  readonly most: number;
};

/**
 * Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) with its default behaviour: `ceil(total / target)` replicas for a
 * metric with an average target, nothing within the tolerance, at most twice the replicas or 4 more in each sync, and down
 * only to the most that any sync of the last `downSeconds` asked for. Called once in `windowSeconds`, for its syncs.
 * https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/
 */
export function podAutoscaler<Metrics>(
  metric: ReplicaMetric<Metrics>,
  { downSeconds = 300, windowSeconds = 30 } = {},
): Policy<Metrics> {
  return () => {
    const recommendations: number[] = [];
    return {
      scale(metrics, fleet, now) {
        if (now === 0) return {};
        const { total, targetPerReplica, most } = metric(metrics);
        let replicas = Math.max(1, fleet.replicas!);
        for (let sync = 0; sync < windowSeconds / SYNC_SECONDS; sync++) {
          const ratio = total / (replicas * targetPerReplica);
          const wanted = Math.abs(ratio - 1) <= TOLERANCE ? replicas : Math.ceil(total / targetPerReplica);
          const reachable = Math.min(wanted, Math.max(2 * replicas, replicas + 4));
          if (sync === 0) recommendations.push(reachable);
          if (recommendations.length > downSeconds / windowSeconds) recommendations.shift();
          const steady = Math.max(...recommendations, reachable);
          replicas = Math.max(
            1,
            Math.min(most, reachable < replicas ? Math.min(replicas, steady) : reachable),
          );
        }
        return replicas;
      },
    };
  };
}
