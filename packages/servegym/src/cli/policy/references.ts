import type { PolicyFunctions, ReplicaView, RequestView } from '@servegym/simulator';

/**
 * The scorers of Kubernetes' inference extension by their weights: short queues relative to the other replicas, free KV
 * blocks, and the share of the prompt that a replica was sent before.
 */
function eppScorers(prefix: number, queue: number, kv: number): PolicyFunctions<unknown> {
  let scored: RequestView | null = null;
  let [fewest, most] = [0, 0];
  const waiting = (replica: ReplicaView) => replica.num_requests_waiting;
  return {
    score(request, replica, _now, { replicas }) {
      if (request !== scored) {
        scored = request;
        fewest = Math.min(...replicas.map(waiting));
        most = Math.max(...replicas.map(waiting));
      }
      const short = most === fewest ? 1 : (most - waiting(replica)) / (most - fewest);
      return queue * short + kv * (1 - replica.kv_cache_usage_perc) + prefix * replica.prefix_match;
    },
  };
}

/** Policies that scores are between. */
export const REFERENCES = {
  'epp-default': {
    title:
      "the endpoint picker's default: prefix-cache-scorer 3, queue-scorer 2, kv-cache-utilization-scorer 2",
    make: () => eppScorers(3, 2, 2),
  },
  'epp-4-3-0': {
    title: 'its scorers with the weights 4, 3 and 0',
    make: () => eppScorers(4, 3, 0),
  },
} as const satisfies Record<string, { title: string; make(): PolicyFunctions<unknown> }>;

export type ReferenceName = keyof typeof REFERENCES;
