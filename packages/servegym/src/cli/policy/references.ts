import type { FleetObservation } from '@servegym/environments';
import {
  kvAware,
  type Policy,
  type PolicyFunctions,
  type ReplicaView,
  type RequestView,
  startPolicy,
} from '@servegym/simulator';

/**
 * The scorers of Kubernetes' inference extension by their weights: short queues relative to the other replicas, free KV
 * blocks, and the share of the prompt that a replica was sent before.
 */
function eppScorers(prefix: number, queue: number, kv: number): PolicyFunctions<unknown> {
  let scored: RequestView | null = null;
  let among: readonly ReplicaView[] = [];
  let [fewest, most] = [0, 0];
  const waiting = (replica: ReplicaView) => replica.num_requests_waiting;
  return {
    score(request, replica, _now, { replicas }) {
      if (request !== scored || replicas !== among) {
        scored = request;
        among = replicas;
        fewest = Math.min(...replicas.map(waiting));
        most = Math.max(...replicas.map(waiting));
      }
      const short = most === fewest ? 1 : (most - waiting(replica)) / (most - fewest);
      return queue * short + kv * (1 - replica.kv_cache_usage_perc) + prefix * replica.prefix_match;
    },
  };
}

/** The functions that decide what a policy does not: the endpoint picker's default. */
export const STANDARD = eppScorers(3, 2, 2);

interface Reference {
  readonly title: string;
  /** Its functions; `STANDARD` has the others. */
  readonly load: () => Policy<never> | Promise<Policy<never>>;
}

const example = (load: () => Promise<{ readonly default: Policy<never> }>) => async () =>
  (await load()).default;

/** A policy of `fleet`, of which only the replicas count. */
const fleetScaler = (name: string) => async () => {
  const { findPolicy } = await import('@servegym/agents');
  const { policy } = findPolicy('fleet', name);
  return (() => {
    policy.reset({ taskId: '', seed: 0 });
    const scale = (observation: FleetObservation, inForce: Readonly<Record<string, number>>, now: number) => {
      const step = { observation, previousAction: inForce, stepIndex: now / 30, reward: null };
      return (policy.act(step as never) as { readonly replicas: number }).replicas;
    };
    return { scale };
  }) as Policy<never>;
};

/** Policies by the names that commands take instead of files. Scores are between two of each suite. */
export const REFERENCES = {
  'epp-default': {
    title: "the endpoint picker's default: prefix 3, queue 2, kv-cache-utilization 2",
    load: () => ({}),
  },
  'epp-4-3-0': { title: 'the endpoint picker with the weights 4, 3, 0', load: () => eppScorers(4, 3, 0) },
  'round-robin': { title: 'in turns', load: () => ({ score: () => 0 }) },
  'least-loaded': {
    title: 'to the replica with the fewest requests in flight',
    load: () => ({ score: (_request, replica) => -replica.requests_in_flight }),
  },
  'kv-aware': { title: "Dynamo's KV router", load: () => kvAware() },
  'known-router': {
    title: 'a linear cost of prompt, queue and KV',
    load: example(() => import('./examples/router.ts')),
  },
  'admit-all': { title: 'everybody is admitted, and routed by the endpoint picker', load: () => ({}) },
  'queue-limit': {
    title: 'batch is refused above 2 s of queue, best effort above 1 s',
    load: () => ({
      admit: (request, { queue_seconds: queue }) => request.priority === 0 || queue < 3 - request.priority,
    }),
  },
  'known-admission': {
    title: 'batch and best effort are refused by the load, with a probability',
    load: example(() => import('./examples/admission.ts')),
  },
  'always-apart': { title: 'every prompt is prefilled apart', load: () => ({ disaggregate: () => true }) },
  'known-disaggregation': {
    title: 'long prompts are prefilled apart while nobody waits',
    load: example(() => import('./examples/disaggregation.ts')),
  },
  'vllm-fcfs': { title: "vLLM's default: first come, first served", load: () => ({}) },
  'shortest-prompt': {
    title: 'the shortest prompt first',
    load: () => ({ order: (queue) => queue.sort((a, b) => a.prompt_tokens - b.prompt_tokens) }),
  },
  'shortest-answer': {
    title: 'the shortest predicted answer first',
    load: () => ({
      order: (queue) =>
        queue.sort((a, b) => (a.predicted_output_tokens ?? 0) - (b.predicted_output_tokens ?? 0)),
    }),
  },
  'last-come': {
    title: 'last come, first served',
    load: () => ({ order: (queue) => queue.sort((a, b) => b.arrival - a.arrival) }),
  },
  'known-scheduler': {
    title:
      'the shortest predicted answer first; what is late comes last, by its length and its time of waiting',
    load: example(() => import('./examples/scheduler.ts')),
  },
  keda: {
    title: "the autoscaler of vLLM's production stack: KEDA on 5 waiting requests a replica",
    load: fleetScaler('keda:5'),
  },
  hpa: {
    title: "Kubernetes' autoscaler on 8 requests in flight a replica",
    load: fleetScaler('hpa:8'),
  },
  saturation: { title: "WVA's saturation mode", load: fleetScaler('saturation') },
  'sla-planner': { title: "Dynamo's planner", load: fleetScaler('sla-planner') },
  'known-autoscaler': {
    title: 'replicas for the work that arrives, corrected by what is late and what GPUs cost',
    load: example(() => import('./examples/autoscaler.ts')),
  },
} as const satisfies Record<string, Reference>;

export type ReferenceName = keyof typeof REFERENCES;
export const REFERENCE_NAMES = Object.keys(REFERENCES) as ReferenceName[];

/** The functions of a reference, for one run. */
export async function startReference(name: ReferenceName): Promise<PolicyFunctions<unknown>> {
  return startPolicy((await REFERENCES[name].load()) as Policy<unknown>, name);
}
