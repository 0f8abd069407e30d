import { FINGERPRINT_SEED, printPlay, recordedReturns } from '../../recorded-returns.ts';
import { holdMaskedKnobs } from '../../window-environment.ts';
import { drawFleetRequests } from '../draw-requests.ts';
import { FleetEpisode } from '../fleet-episode.ts';
import type { FleetRequests } from '../fleet-requests.ts';
import { FLEET_TASKS, type FleetTask } from '../fleet-task.ts';
import type { FleetAction } from '../schema.ts';
import { type FleetController, RateRule, type RateRuleParameters, ReplicaScaler } from './controllers.ts';
import recorded from './reference-returns.json' with { type: 'json' };
import { fleetReturnBound } from './return-bound.ts';

/** Recorded returns of a task. */
export interface FleetTaskReference {
  readonly fingerprint: string;
  /** The parameters of the rule that earned most on the training seeds. */
  readonly rule: RateRuleParameters;
  /** The same of `hpa`: requests in flight a replica. */
  readonly inFlightTarget: number;
  /** The same of `static`. */
  readonly constantReplicas: number;
  readonly seeds: Readonly<Record<string, FleetSeedReturns>>;
}

/** Returns on the requests of one seed. */
export interface FleetSeedReturns {
  /** Of the HorizontalPodAutoscaler. */
  readonly default: number;
  readonly rule: number;
  /** Of a planner that knows the requests. */
  readonly clairvoyant: number;
}

/** Windows of the episode that is played for a fingerprint, and what they change of the default settings. */
const PLAYED: readonly Partial<FleetAction>[] = [
  {},
  { replicas: 6, max_num_batched_tokens: 1024 },
  { replicas: 5, routing_prefix: 1, routing_cache: 0.5 },
  { replicas: 2, max_num_active_seqs: 64 },
  { replicas: 6, prefill_replicas: 2, admission_seconds: 1 },
  { replicas: 6, prefill_replicas: 1, max_num_batched_tokens: 8192 },
  { replicas: 1, admission_seconds: 1 },
  {},
];

/** The recorded returns. */
export const fleetReturns = recordedReturns<FleetTask, FleetSeedReturns, FleetTaskReference>({
  url: new URL('./reference-returns.json', import.meta.url),
  records: recorded,
  shipped: FLEET_TASKS,
  print(hash, task) {
    const { name: _, description: __, ...rest } = task;
    const episode = new FleetEpisode(task, FINGERPRINT_SEED);
    // A replica starts in the seconds that the task says: the costs of a change of weights concern `llmserve` alone.
    const profiles = episode.profiles.map(({ reloadSeconds: _, hostCheckpoints: __, ...profile }) => profile);
    hash.update(JSON.stringify([rest, profiles]));
    const { inputTokens, outputTokens, classes, startTicks, thinkTicks } = episode.requests;
    for (const column of [inputTokens, outputTokens, classes, startTicks, thinkTicks]) hash.update(column);
    printPlay(hash, episode, PLAYED);
  },
  tuned: ({ rule }) => rule,
  bound: (task, seed) => fleetReturnBound(task, drawFleetRequests(task, seed)),
  boundedSeeds: 5,
  unrecorded: 1,
});

/** Requests in flight a replica that `hpa` aims at on tasks without a record: a choice. */
const IN_FLIGHT_TARGET = 40;

/**
 * The autoscaler on requests that wait or run: the default that scores are held against.
 * @param target requests a replica. Default: the best in training on the task that is played, by its record
 */
export function hpaInFlight(target?: number): ReplicaScaler {
  return new ReplicaScaler(target === undefined ? 'hpa' : `hpa:${target}`, ({ observation }) => ({
    total: observation.num_requests_running + observation.num_requests_waiting,
    targetPerReplica:
      target ?? fleetReturns.reference(observation.task_id)?.inFlightTarget ?? IN_FLIGHT_TARGET,
  }));
}

/** Returns that an episode is held against, all on the same requests. */
export interface FleetAnchors {
  /** Of Kubernetes' HorizontalPodAutoscaler on requests in flight. */
  readonly default: number;
  /** Of the rule with the parameters that earned most in training. */
  readonly rule: number;
  readonly clairvoyant: number;
  /** No policy can exceed it. */
  readonly bound: number;
  /** True when `clairvoyant` is an estimate, because nothing is recorded for these requests. */
  readonly estimated: boolean;
}

/**
 * The recorded returns of (task, seed). Where there are none, the autoscaler and the rule are played, and the clairvoyant
 * is taken to come as far from the better of them towards the bound as it does over the recorded seeds of the task; for
 * a task of which nothing is recorded, to the bound.
 */
export function fleetAnchors(task: FleetTask, seed: number, requests: FleetRequests): FleetAnchors {
  const bound = fleetReturnBound(task, requests);
  const recorded = fleetReturns.returns(task, seed);
  if (recorded !== undefined) return { ...recorded, bound, estimated: false };
  const played = (controller: FleetController) => controlledReturn(task, seed, requests, controller);
  const standard = played(hpaInFlight());
  const rule = played(new RateRule(fleetReturns.reference(task.id)?.rule));
  const best = Math.max(standard, rule);
  return {
    ...{ default: standard, rule, bound, estimated: true },
    // Rounding must not lift it above the bound.
    clairvoyant: Math.min(bound, best + fleetReturns.foresight(task.id) * (bound - best)),
  };
}

/** Return of an episode that a controller plays, with masked knobs at their defaults. */
export function controlledReturn(
  task: FleetTask,
  seed: number,
  requests: FleetRequests,
  controller: FleetController,
): number {
  const episode = new FleetEpisode(task, seed, requests);
  controller.reset();
  while (!episode.done) {
    const { window: stepIndex, action: previousAction } = episode;
    const action = controller.act({ observation: episode.observation(), previousAction, stepIndex });
    episode.step(holdMaskedKnobs(task, action));
  }
  return episode.totals.reward;
}
