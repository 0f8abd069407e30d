import { type FleetTaskId, fleet, hpaInFlight, ReplicaScaler } from '@servegym/environments';
import { AgentError } from '../error-catalogue.ts';
import { NetworkPolicy } from '../learning/network-policy.ts';
import type { PolicyDescription } from './serve-policies.ts';
import { decodeDemand } from '../learning/demand-file.ts';
import { decodeFleetActor, FleetActionCodec } from '../learning/fleet-learning-task.ts';
import { DemandPolicy } from './demand-policy.ts';
import type { FleetPolicy } from './fleet-policy.ts';
import { SaturationPolicy } from './saturation-policy.ts';
import { prefixWeights, pressureBudget, ScaledPolicy } from './scaled-policy.ts';
import { SlaPlannerPolicy } from './sla-planner-policy.ts';
import { StaticPolicy } from './static-policy.ts';
import { TunedRatePolicy } from './tuned-rate-policy.ts';

/** Requests that wait a replica: the threshold of the KEDA tutorial of vLLM's production stack. */
const QUEUE_TARGET = 5;

const POLICIES: Readonly<
  Record<string, { title: string; description: string; create: (value: number | null) => FleetPolicy }>
> = {
  static: {
    title: 'Fixed number',
    description:
      'As many replicas all the time: `static:8`; without a number, the best in training on the task',
    create: (replicas) => new StaticPolicy(replicas ?? undefined),
  },
  hpa: {
    title: 'HPA',
    description:
      "Kubernetes' HorizontalPodAutoscaler on requests in flight, `hpa:40` a replica; without a number, the best in training on the task",
    create: (target) => hpaInFlight(target ?? undefined),
  },
  keda: {
    title: 'KEDA',
    description: `KEDA on requests that wait, \`keda:${QUEUE_TARGET}\` a replica`,
    create: (target) => {
      const targetPerReplica = target ?? QUEUE_TARGET;
      return new ReplicaScaler(`keda:${targetPerReplica}`, ({ observation }) => ({
        total: observation.num_requests_waiting,
        targetPerReplica,
      }));
    },
  },
  saturation: {
    title: 'llm-d saturation',
    description: "llm-d's workload variant autoscaler: one replica more or less by what is spare",
    create: () => new SaturationPolicy(),
  },
  'sla-planner': {
    title: 'Dynamo SLA planner',
    description:
      "NVIDIA Dynamo's SLA planner: the last window's load over the profiled throughput of a replica",
    create: () => new SlaPlannerPolicy(),
  },
  'prefix-router': {
    title: 'HPA with prefix routing',
    description:
      "`hpa` with the routing weights of llm-d's gateway, which prefer replicas that know the prompt",
    create: (target) => new ScaledPolicy('prefix-router', target, prefixWeights),
  },
  'p-pas': {
    title: 'HPA with P-PAS budget',
    description: '`hpa` with a token budget that is small under prefill pressure and large otherwise',
    create: (target) => new ScaledPolicy('p-pas', target, pressureBudget),
  },
  rule: {
    title: 'Tuned rule',
    description:
      'Replicas for the work that arrives, six parameters tuned for each task; `rule:N` tokens a second a replica',
    create: (tokensPerReplica) => new TunedRatePolicy(tokensPerReplica === null ? {} : { tokensPerReplica }),
  },
};

/** Names and descriptions of the policies of `fleet`. */
export function listFleetPolicies(): readonly PolicyDescription[] {
  return Object.entries(POLICIES).map(([name, { title, description }]) => ({ name, title, description }));
}

/**
 * A policy of `fleet` by its name, with a number where it takes one: `hpa`, `hpa:30`, `static:8`.
 * @throws AgentError `UNKNOWN_POLICY`
 */
export function createFleetPolicy(spec: string): FleetPolicy {
  const [name, value, ...rest] = spec.split(':');
  const known = Object.hasOwn(POLICIES, name) ? POLICIES[name] : undefined;
  const number = value === undefined ? null : Number(value);
  if (
    known === undefined ||
    rest.length > 0 ||
    (number !== null && !(number > 0 && Number.isFinite(number)))
  ) {
    throw new AgentError('UNKNOWN_POLICY', {
      known: Object.keys(POLICIES).map((each) => `${each}[:number]`),
      got: spec,
    });
  }
  return known.create(number);
}

/**
 * The policy in a file that training wrote, and its task: a network in safetensors, parameters in JSON.
 * @throws AgentError `TENSOR_FILE` or `POLICY_...`
 */
export function loadFleetPolicy(file: Uint8Array): {
  readonly taskId: FleetTaskId;
  readonly policy: FleetPolicy;
} {
  if (file[0] === '{'.charCodeAt(0)) {
    const { taskId, parameters } = decodeDemand(file);
    return { taskId, policy: new DemandPolicy(parameters) };
  }
  const { taskId, weights } = decodeFleetActor(file);
  const codec = new FleetActionCodec(taskId);
  return { taskId, policy: new NetworkPolicy({ taskId, weights, features: fleet.features, codec }) };
}
