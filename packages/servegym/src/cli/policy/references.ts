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

/**
 * The cheapest replica by a linear law of what a prompt adds to it, found by evolution on the training traces. What was
 * sent since an old scrape says little, as most of it is done.
 */
const cost: PolicyFunctions<unknown> = {
  score(request, replica) {
    const sent = replica.requests_sent * Math.min(1, 0.264 / Math.max(1e-9, replica.scrape_age));
    const fresh = request.prompt_tokens - replica.prefix_match_tokens;
    return (
      1.31 * replica.prefix_match -
      0.00084 * fresh -
      0.0000105 * replica.prompt_tokens_queued -
      0.535 * (replica.num_requests_running + sent) -
      0.817 * replica.num_requests_waiting -
      1.16 * replica.kv_cache_usage_perc
    );
  },
};

/** Refuses a class with the probability by which a replica has too many requests of others, best effort before batch. */
const byLoad: PolicyFunctions<unknown> = {
  admit({ priority }, { replicas }) {
    let requests = 0;
    for (const each of replicas) requests += each.num_requests_running + each.num_requests_waiting;
    return (
      priority === 0 || Math.min(1, Math.max(0, 2 - requests / replicas.length / (priority === 1 ? 30 : 20)))
    );
  },
};

const EPP = eppScorers(3, 2, 2);
const EPP_WORDS = 'prefix-cache-scorer 3, queue-scorer 2, kv-cache-utilization-scorer 2';

/** Policies that scores are between, which also decide what a policy does not. */
export const REFERENCES = {
  'epp-default': { title: `the endpoint picker's default: ${EPP_WORDS}`, functions: EPP },
  'router-cost': {
    title: 'a linear cost of prompt, queue and KV, found by evolution on the training traces',
    functions: { ...EPP, ...cost },
  },
  'admit-all': { title: 'everybody is admitted, and routed by the endpoint picker', functions: EPP },
  'admit-by-load': {
    title: 'batch is refused from 30 requests a replica on, best effort from 20, by a probability',
    functions: { ...EPP, ...byLoad },
  },
  'always-apart': {
    title: 'every prompt is prefilled apart',
    functions: { ...EPP, disaggregate: () => true },
  },
  'apart-when-long': {
    title: 'prompts of more than 4,000 tokens are prefilled apart while nobody waits for 0.2 s',
    functions: {
      ...EPP,
      disaggregate: ({ prompt_tokens }, { queue_seconds }) => prompt_tokens > 4000 && queue_seconds < 0.2,
    },
  },
} as const satisfies Record<string, { title: string; functions: PolicyFunctions<unknown> }>;

export type ReferenceName = keyof typeof REFERENCES;
