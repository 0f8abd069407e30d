import { foresightShares, type RecordedReturns, recordedRoom } from '../../recorded-anchors.ts';
import type { ScoreAnchors } from '../../regret-score.ts';
import { drawRequests, type EpisodeRequests } from '../requests/episode-requests.ts';
import type { ServeAction } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import { SERVE_TASKS } from '../task-registry.ts';
import type { ServeTask } from '../tasks/serve-task.ts';
import {
  isRecordedTask,
  recordedReference,
  recordedReturns,
  referenceConfigurations,
  type SeedReturns,
} from './reference-returns.ts';
import { returnBound } from './return-bound.ts';

/** Configurations for traffic of which nothing is known: much and little at once, in each precision. */
const ALL_ROUND: readonly ServeAction[] = (['FP16', 'INT8', 'INT4'] as const).flatMap((tier) =>
  [
    { batch_cap: 512, kv_budget_fraction: 1 },
    { batch_cap: 64, kv_budget_fraction: 0.4 },
  ].map((capacity) => ({
    ...capacity,
    speculation_depth: 0,
    quantization_tier: tier,
    prefill_decode_split: false,
    priority_routing: true,
  })),
);

/** Returns that an episode is held against, all on the same traffic. */
export interface EpisodeAnchors extends ScoreAnchors {
  /** Of the receding-horizon planner; `null` where it was not played. */
  readonly planner: number | null;
  /** No policy can exceed it. */
  readonly bound: number;
  /** True when `clairvoyant` is an estimate, because nothing is recorded for this traffic. */
  readonly estimated: boolean;
}

/**
 * The recorded returns of (task, seed). Where there are none, the default and the best constant are played, and the
 * clairvoyant is taken to come as far from the better of them towards the bound as it does over the recorded seeds of the
 * task. Under a shift, where the best constant of the task may be a bad one, the best of several configurations stands in
 * for the better of the two. For a task of which nothing is recorded, the clairvoyant is taken to reach the bound.
 */
export function episodeAnchors(task: ServeTask, seed: number, requests: EpisodeRequests): EpisodeAnchors {
  const bound = returnBound(task, requests);
  const recorded = recordedReturns(task, seed);
  if (recorded !== undefined) return { planner: null, ...recorded, bound, estimated: false };
  const played = (action: ServeAction) => constantReturn(task, seed, requests, action);
  const standard = played(task.defaultAction);
  const reference = recordedReference(task.id);
  if (reference === undefined) {
    return {
      default: standard,
      constant: null,
      planner: null,
      clairvoyant: bound,
      bound,
      estimated: true,
    };
  }
  const constant = played(reference.constant);
  const others = isRecordedTask(task) ? [] : [...referenceConfigurations(task), ...ALL_ROUND];
  const best = Math.max(standard, constant, ...others.map(played));
  return {
    default: standard,
    constant,
    planner: null,
    clairvoyant: best + foresightShare(task.id) * (bound - best),
    bound,
    estimated: true,
  };
}

/** Room to adapt over the recorded seeds of a task; 0 where nothing is recorded. */
export function roomToAdapt(taskId: string): number {
  return recordedRoom(Object.values(recordedReference(taskId)?.seeds ?? {}).map(asTuned), 0);
}

/** Recorded seeds that are looked at: their traffic has to be drawn again for the bound. */
const SEEDS = 12;

const foresightShare = foresightShares((taskId) => {
  if (!Object.hasOwn(SERVE_TASKS, taskId)) return [];
  const task = SERVE_TASKS[taskId as keyof typeof SERVE_TASKS];
  const seeds = Object.entries(recordedReference(taskId)?.seeds ?? {}).slice(0, SEEDS);
  return seeds.map(([seed, returns]) => ({
    returns: asTuned(returns),
    bound: () => returnBound(task, drawRequests(task, Number(seed))),
  }));
}, 0);

function asTuned({ constant: tuned, ...returns }: SeedReturns): RecordedReturns {
  return { ...returns, tuned };
}

/** Return of an episode in which the configuration never changes. */
export function constantReturn(
  task: ServeTask,
  seed: number,
  requests: EpisodeRequests,
  action: ServeAction,
): number {
  const episode = new ServeEpisode(task, seed, { requests });
  while (!episode.done) episode.step(action);
  return episode.totals.reward;
}
